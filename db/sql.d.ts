/** SQL files are imported as text: `import init from './0000_init.sql' with { type: 'text' }`. */
declare module '*.sql' {
  const text: string
  export default text
}
