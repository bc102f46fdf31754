import { expect, it, onTestFinished } from 'vitest';
import { buildConsole, hasBrowser, launchBrowser, openPage } from './browser.ts';
import { startConsolePlatform } from './console-platform.ts';
import { AUDIENCE, CLIENT_ID, OidcIssuer } from './oidc-issuer.ts';

/** Opens the console of a platform whose users sign in at an issuer, and signs in. */
async function signedIn(issuer: OidcIssuer) {
  buildConsole();
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
  const baseURL = platform.platform.edgeUrl;
  const opened = await openPage(browser, { baseURL });
  const { page } = opened;
  await page.goto('/');
  await page.getByRole('button', { name: `Sign in at ${new URL(issuer.url).host}` }).click();
  await page.getByRole('link', { name: 'Continue as ada' }).click();
  await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor();
  return { ...opened, baseURL };
}

it.runIf(hasBrowser())(
  'signs a user in through an OIDC issuer with the roles of the token, and signs the user out (PE-2, SYS-6)',
  async () => {
    const { page, context, problems, baseURL } = await signedIn(await OidcIssuer.start());
    // The URL and the cookies contain neither the code nor the tokens, and the roles are those of the token.
    expect(page.url()).toBe(`${baseURL}/runs`);
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

it.runIf(hasBrowser())(
  'renews a token while the issuer permits it, and then asks for a sign-in (PE-2, SYS-6)',
  async () => {
    const issuer = await OidcIssuer.start();
    issuer.tokenSeconds = 1;
    const { page, context } = await signedIn(issuer);
    issuer.renewal = 'fail';
    await page.waitForFunction(() => {
      const user =
        Object.values(sessionStorage).find((item) => item.includes('expires_at')) ?? '{}';
      return JSON.parse(user).expires_at <= Math.floor(Date.now() / 1_000);
    });
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByText('The issuer did not renew the sign-in').first().waitFor();
    issuer.renewal = 'accept';
    await page.reload();
    await page.getByRole('heading', { name: 'Audit', level: 1 }).waitFor();
    issuer.renewal = 'refuse';
    // The console may use the last token for another second, and a stream opened with it continues.
    await expect
      .poll(async () => {
        for (const name of ['Runs', 'Audit']) {
          // The sign-in page has no links.
          const link = page.getByRole('link', { name });
          await link.click({ timeout: 1_000 }).catch(() => undefined);
        }
        return await page.getByRole('heading', { name: 'Sign in to Writ' }).isVisible();
      })
      .toBe(true);
    await context.close();
  },
);
