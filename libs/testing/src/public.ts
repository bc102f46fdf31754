/** The part of this package that is published: what tests of a project use. */
export * from './platform/test-project.ts';
