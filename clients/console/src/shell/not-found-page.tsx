import { EmptyNotice } from '../parts/notices.tsx';
import { Page } from '../parts/page.tsx';

/** A path without a page, or a page that no role of the person permits. */
export function NotFoundPage() {
  return (
    <Page title="Page not found">
      <EmptyNotice title="There is no such page">
        Select a page in the navigation. It lists the pages that your roles permit.
      </EmptyNotice>
    </Page>
  );
}
