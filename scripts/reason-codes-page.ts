/** Writes the table of docs/reference/reason-codes.md from REASONS of libs/kernel. */
import { REASONS, type ReasonInfo } from '@writ/kernel';

/** The page whose table is generated. */
export const PAGE = 'docs/reference/reason-codes.md';
const BEGIN = '<!-- the table: npm run pages -->';
const END = '<!-- end of the table -->';

/** The page with its table generated from {@link REASONS}. */
export function withTable(page: string): string {
  const [before = '', rest = ''] = page.split(BEGIN);
  const [, after = ''] = rest.split(END);
  return `${before}${BEGIN}\n\n${table()}\n\n${END}${after}`;
}

function table(): string {
  const codes = Object.entries<ReasonInfo>(REASONS).sort(([a], [b]) => (a < b ? -1 : 1));
  const rows = codes.map(([code, { status, meaning, action }]) => {
    const statuses = [status].flat().map((kind) => kind.toUpperCase());
    return `| \`${code}\` | ${statuses.join(', ')} | ${cell(meaning)} | ${cell(action)} |`;
  });
  return ['| code | gRPC status | meaning | what to do |', '|---|---|---|---|', ...rows].join('\n');
}

/** Text that Markdown must not read as HTML or as emphasis. */
function cell(text: string): string {
  return text.replace(/</g, '&lt;').replace(/__/g, '\\_\\_');
}
