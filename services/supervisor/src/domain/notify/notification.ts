/** Types of events for which an endpoint can receive notifications. */
export const NOTIFIED = ['approval_requested', 'halted', 'budget_threshold'] as const;

/** One of {@link NOTIFIED}. */
export type Notified = (typeof NOTIFIED)[number];

/** A notification: ids, names and numbers, never content of an action. */
export interface Notification {
  /** `test` goes to every endpoint, on request. */
  readonly type: Notified | 'test';
  /** ISO 8601. */
  readonly timestamp: string;
  /** The fields for the type of the notification; empty fields are omitted. */
  readonly data: Readonly<Record<string, string | number>>;
}

/** Returns the JSON that an endpoint receives, with a link to the console when its address is known. */
export function standardBody({ type, timestamp, data }: Notification, consoleUrl: string): string {
  const link = linkTo(data, consoleUrl);
  return JSON.stringify({ type, timestamp, data: { ...data, ...(link !== '' && { link }) } });
}

/** Returns the JSON of an incoming webhook of Slack, or of a compatible chat. */
export function slackBody(notification: Notification, consoleUrl: string): string {
  const link = linkTo(notification.data, consoleUrl);
  const text = escaped(sentenceOf(notification));
  return JSON.stringify({ text: link === '' ? text : `${text} <${link}|Open in Writ>` });
}

function sentenceOf({ type, data }: Notification): string {
  const { tenant = '', run_id = '', agent = '', agent_instance = '', tool = '' } = data;
  const where = [run_id && `run ${run_id}`, tenant && `tenant ${tenant}`]
    .filter(Boolean)
    .join(', ');
  switch (type) {
    case 'approval_requested':
      return `Approval requested: agent ${agent}${tool === '' ? '' : `, tool ${tool}`} (${where}).`;
    case 'halted': {
      const scope =
        agent_instance === '' ? where || 'everything' : `agent ${agent_instance}, ${where}`;
      return `Halt ${data.halt_id} is in force (${scope}).`;
    }
    case 'test':
      return `Test of the notifications of tenant ${tenant}.`;
    case 'budget_threshold':
      return `Budget at ${data.percent} % of the ${data.dimension} cap of level ${data.level} (${where}).`;
  }
}

function linkTo(
  { approval_id, run_id, halt_id }: Notification['data'],
  consoleUrl: string,
): string {
  if (consoleUrl === '') return '';
  const base = consoleUrl.replace(/\/+$/, '');
  if (approval_id !== undefined) return `${base}/approvals/${approval_id}`;
  if (halt_id !== undefined) return `${base}/halts`;
  return run_id === undefined ? base : `${base}/runs/${run_id}`;
}

/** Escapes the three characters that have a meaning in Slack's text. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
