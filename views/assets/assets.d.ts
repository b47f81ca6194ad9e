/** Files imported as text (`with { type: 'text' }`) and embedded in the binary. A script with types of its own is a module. */
declare module '*.css' {
  const text: string
  export default text
}
declare module '*.md' {
  const text: string
  export default text
}
declare module '*.js' {
  const text: string
  export default text
}
