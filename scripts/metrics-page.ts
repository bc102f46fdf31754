/** Writes the table of docs/reference/metrics.md from METRICS of libs/telemetry. */
import { METRICS, type MetricKey, prometheusName } from '@writ/telemetry';

/** The page whose table is generated. */
export const PAGE = 'docs/reference/metrics.md';
const BEGIN = '<!-- the table: npm run pages -->';
const END = '<!-- end of the table -->';

/** The page with its table generated from {@link METRICS}. */
export function withTable(page: string): string {
  const [before = '', rest = ''] = page.split(BEGIN);
  const [, after = ''] = rest.split(END);
  return `${before}${BEGIN}\n\n${table()}\n\n${END}${after}`;
}

function table(): string {
  const rows = (Object.keys(METRICS) as MetricKey[]).map((key) => {
    const { name, kind, unit, labels, from, about } = METRICS[key];
    const cells = [
      `\`${name}\``,
      kind,
      `\`${unit}\``,
      labels.map((label) => `\`${label}\``).join(', '),
      from,
      about,
      `\`${prometheusName(key)}\``,
    ];
    return `| ${cells.join(' | ')} |`;
  });
  return [
    '| metric | kind | unit | labels | from | what | in Prometheus |',
    '|---|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}
