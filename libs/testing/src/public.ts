/** The part of this package that is published: what tests of a project use. */
export {
  startTestPlatform,
  type TestPlatform,
  type TestPlatformOptions,
} from './platform/index.ts';
