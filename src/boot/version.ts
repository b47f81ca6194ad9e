/** The version of this build, inlined by the bundler. */
export { version as VERSION } from '../../package.json'
