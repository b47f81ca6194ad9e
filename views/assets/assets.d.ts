/** Files imported as text (`with { type: 'text' }`) and embedded in the binary. */
declare module '*.css' {
  const text: string
  export default text
}
declare module '*/app.js' {
  const text: string
  export default text
}
declare module '*/access.js' {
  const text: string
  export default text
}
declare module '*.min.js' {
  const text: string
  export default text
}
