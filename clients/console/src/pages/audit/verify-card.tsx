import { Alert, Button, FileInput, Group, Radio, Stack, Text, TextInput } from '@mantine/core';
import { Download, ShieldCheck } from 'lucide-react';
import { useEffect, useState } from 'react';
import { ErrorNotice } from '../../parts/notices.tsx';
import { Section } from '../../parts/section.tsx';
import { useVerification } from './use-verification.ts';
import { canVerify, recordNumber } from './verify-chain.ts';

/** Downloads the chain of the tenant and verifies it in the browser. */
export function VerifyCard() {
  const [source, setSource] = useState('published');
  const [keyFile, setKeyFile] = useState<File | null>(null);
  const [exportFile, setExportFile] = useState<File | null>(null);
  const [start, setStart] = useState('');
  const { progress, verdict, error, verify, clear, download } = useVerification();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the verdict is about the inputs at the click.
  useEffect(clear, [exportFile, keyFile, source, start]);
  const usesKeyFile = source === 'file';
  const after = exportFile === null ? 0 : recordNumber(start);
  const isBusy = progress !== '';
  return (
    <Section title="Verify the chain">
      <Stack>
        <Text size="sm">
          Every record contains the hash of the previous one, and the supervisor signs the chain.
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
          description="Leave empty to verify the current chain of the platform."
          placeholder="Select a file of writ audit export"
          value={exportFile}
          onChange={setExportFile}
          clearable
        />
        {exportFile !== null && (
          <TextInput
            label="Starts after record"
            description="The number that was passed to --after. Leave empty for a complete export."
            inputMode="numeric"
            autoComplete="off"
            value={start}
            onChange={(event) => setStart(event.currentTarget.value)}
            error={after === undefined && 'This is not a record number.'}
          />
        )}
        <Radio.Group label="Public keys" value={source} onChange={setSource}>
          <Stack gap="xs" mt={6}>
            <Radio
              value="published"
              label="The keys that the platform publishes now"
              description="Detects changes by third parties, but not by the platform itself."
            />
            <Radio
              value="file"
              label="A file that I kept"
              description="`writ audit keys` prints it; keep it outside of the platform."
            />
          </Stack>
        </Radio.Group>
        {usesKeyFile && (
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
            disabled={!canVerify() || (usesKeyFile && keyFile === null) || after === undefined}
            onClick={() => void verify(exportFile, usesKeyFile ? keyFile : null, after)}
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
              title={verdict.holds ? 'The chain is valid' : 'The chain is invalid'}
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
