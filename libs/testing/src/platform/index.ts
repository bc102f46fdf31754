export { startTestPlatform, type TestPlatform, type TestPlatformOptions } from './test-platform.ts';
