/** Published entry point of this package, for the tests of projects. */
export * from './platform/test-project.ts';
