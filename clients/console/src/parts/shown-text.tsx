import { Code, CopyButton, Tooltip, UnstyledButton } from '@mantine/core';
import { printable } from '@writ/client/display';

/**
 * Shows text from models, tools or people without interpreting markup. Control characters are shown by their code; line
 * breaks are kept.
 */
export function ShownText({ children }: { readonly children: string }) {
  return <span className="untrusted">{printable(children)}</span>;
}

/** JSON from models, tools or people, indented; other text unchanged. */
export function ShownJson({
  json,
  maxHeight = 320,
}: {
  readonly json: string;
  readonly maxHeight?: number | string;
}) {
  return (
    <Code block className="untrusted" tabIndex={0} style={{ maxHeight, overflow: 'auto' }}>
      {printable(indented(json))}
    </Code>
  );
}

function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

/** An id; a click copies it. */
export function CopyId({ id }: { readonly id: string }) {
  return (
    <CopyButton value={id}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? 'Copied' : 'Copy'}>
          <UnstyledButton
            className="mono"
            onClick={copy}
            style={{ overflowWrap: 'anywhere' }}
            aria-label={`Copy ${id}`}
          >
            {id}
          </UnstyledButton>
        </Tooltip>
      )}
    </CopyButton>
  );
}
