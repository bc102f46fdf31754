import { expect, it, onTestFinished } from 'vitest';
import { buildConsole, hasBrowser, launchBrowser, openPage } from './browser.ts';
import { startConsolePlatform } from './console-platform.ts';
import { AUDIENCE, CLIENT_ID, OidcIssuer } from './oidc-issuer.ts';

it.runIf(hasBrowser())(
  'signs a user in through an OIDC issuer with the roles of the token, and signs the user out (PE-2, SYS-6)',
  async () => {
    buildConsole();
    const issuer = await OidcIssuer.start();
    onTestFinished(() => issuer.close());
    const platform = await startConsolePlatform({
      WRIT_OIDC_ISSUER: issuer.url,
      WRIT_OIDC_AUDIENCE: AUDIENCE,
      WRIT_OIDC_JWKS_URL: `${issuer.url}/jwks`,
      WRIT_CONSOLE_OIDC_CLIENT_ID: CLIENT_ID,
    });
    onTestFinished(() => platform.close());
    const browser = await launchBrowser();
    onTestFinished(() => browser.close());
    const { page, context, problems } = await openPage(browser, {
      baseURL: platform.platform.edgeUrl,
    });
    await page.goto('/');
    await page.getByRole('button', { name: `Sign in at ${new URL(issuer.url).host}` }).click();
    await page.getByRole('link', { name: 'Continue as ada' }).click();
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor();
    // The URL and the cookies contain neither the code nor the tokens, and the roles are those of the token.
    expect(page.url()).toBe(`${platform.platform.edgeUrl}/runs`);
    expect(await context.cookies()).toEqual([]);
    await page.getByRole('link', { name: 'Audit' }).waitFor();
    await page.goto('/halts');
    await page.getByRole('heading', { name: 'Halts', level: 1 }).waitFor();
    expect(await page.getByRole('button', { name: 'Halt', exact: true }).count()).toBe(0);
    await page.getByRole('button', { name: 'Signed in as ada' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to Writ' }).waitFor();
    await expect
      .poll(() => page.evaluate(() => JSON.stringify(sessionStorage).includes('access_token')))
      .toBe(false);
    expect(problems).toEqual([]);
    await context.close();
  },
);
