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
declare module '*/keys.js' {
  const text: string
  export default text
}
declare module '*/accounts.js' {
  const text: string
  export default text
}
declare module '*/doctor.js' {
  const text: string
  export default text
}
declare module '*/new-account.js' {
  const text: string
  export default text
}
declare module '*/live.js' {
  const text: string
  export default text
}
declare module '*/logs.js' {
  const text: string
  export default text
}
