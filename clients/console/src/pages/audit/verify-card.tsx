import { Alert, Button, FileInput, Group, Radio, Stack, Text } from '@mantine/core';
import { Download, ShieldCheck } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { ErrorNotice } from '../../parts/notices.tsx';
import { Section } from '../../parts/section.tsx';
import { useSession } from '../../session/session-provider.tsx';
import {
  type ChainVerdict,
  canVerify,
  downloadChain,
  publishedKeys,
  verifyChain,
} from './verify-chain.ts';

/** Downloads the chain of the tenant and verifies it in the browser. */
export function VerifyCard() {
  const { api, caller } = useSession();
  const [source, setSource] = useState('published');
  const [keyFile, setKeyFile] = useState<File | null>(null);
  const [exportFile, setExportFile] = useState<File | null>(null);
  const [progress, setProgress] = useState('');
  const [verdict, setVerdict] = useState<ChainVerdict>();
  const [error, setError] = useState<unknown>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  const run = async (work: (signal: AbortSignal) => Promise<void>): Promise<void> => {
    running.current?.abort();
    const attempt = new AbortController();
    running.current = attempt;
    setVerdict(undefined);
    setError(undefined);
    try {
      await work(attempt.signal);
    } catch (failure) {
      if (!attempt.signal.aborted) setError(failure);
    }
    if (!attempt.signal.aborted) setProgress('');
  };
  const load = async (signal: AbortSignal): Promise<string[]> => {
    if (exportFile !== null) return linesOf(await exportFile.text());
    return await downloadChain(api, (lines) => setProgress(`${lines} lines read`), signal);
  };
  const verify = (): Promise<void> =>
    run(async (signal) => {
      setProgress('Reading the chain');
      const lines = await load(signal);
      setProgress(`Verifying ${lines.length} lines`);
      const jwks =
        keyFile !== null && source === 'file' ? await keyFile.text() : await publishedKeys(api);
      setVerdict(await verifyChain(lines, jwks));
    });
  const download = (): Promise<void> =>
    run(async (signal) => {
      setProgress('Reading the chain');
      const lines = await downloadChain(api, (count) => setProgress(`${count} lines read`), signal);
      save(`writ-audit-${caller?.tenant ?? 'tenant'}.jsonl`, `${lines.join('\n')}\n`);
    });
  const isBusy = progress !== '';
  return (
    <Section title="Verify the chain">
      <Stack>
        <Text size="sm">
          Every record follows the previous one by its hash, and the supervisor signs the chain.
          This page verifies it with the code of `writ audit verify`.
        </Text>
        {!canVerify() && (
          <Alert color="yellow" role="note">
            This browser verifies signatures only on https or localhost. Download the chain, and use
            `writ audit verify`.
          </Alert>
        )}
        <FileInput
          label="Export"
          description="Empty: the chain as the platform has it now."
          placeholder="Select a file of writ audit export"
          value={exportFile}
          onChange={setExportFile}
          clearable
        />
        <Radio.Group label="Public keys" value={source} onChange={setSource}>
          <Stack gap="xs" mt={6}>
            <Radio
              value="published"
              label="Those that the platform publishes now"
              description="Finds changes by others. It does not protect from the platform itself."
            />
            <Radio
              value="file"
              label="A file that I kept"
              description="`writ audit keys` prints it; keep it outside of the platform."
            />
          </Stack>
        </Radio.Group>
        {source === 'file' && (
          <FileInput
            label="Key file"
            placeholder="Select a JSON Web Key Set"
            value={keyFile}
            onChange={setKeyFile}
            clearable
          />
        )}
        <Group>
          <Button
            leftSection={<ShieldCheck size={16} />}
            loading={isBusy}
            disabled={!canVerify() || (source === 'file' && keyFile === null)}
            onClick={() => void verify()}
          >
            Verify
          </Button>
          <Button
            variant="default"
            leftSection={<Download size={16} />}
            disabled={isBusy}
            onClick={() => void download()}
          >
            Download
          </Button>
        </Group>
        <div aria-live="polite">
          {isBusy && (
            <Text size="sm" className="muted">
              {progress}
            </Text>
          )}
          {verdict !== undefined && (
            <Alert
              color={verdict.holds ? 'green' : 'red'}
              title={verdict.holds ? 'The chain holds' : 'The chain does not hold'}
            >
              {verdict.sentence}
            </Alert>
          )}
        </div>
        {error !== undefined && <ErrorNotice error={error} />}
      </Stack>
    </Section>
  );
}

function linesOf(text: string): string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

function save(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/jsonl' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
