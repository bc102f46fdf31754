export { startTestPlatform, type TestPlatform, type TestPlatformOptions } from './test-platform.ts';
export {
  startTestProject,
  type TestApproval,
  type TestProject,
  type TestProjectOptions,
  type TestRun,
} from './test-project.ts';
