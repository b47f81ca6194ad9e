/** Files imported as text (`with { type: 'text' }`) and embedded in the executable. Scripts with types are modules. */
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
