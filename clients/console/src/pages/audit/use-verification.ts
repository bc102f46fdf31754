import { useEffect, useRef, useState } from 'react';
import { useSession } from '../../session/session-provider.tsx';
import { type ChainVerdict, downloadChain, publishedKeys, verifyChain } from './verify-chain.ts';

/** Verification of the audit chain in the browser. A new verification or download replaces the one in progress. */
interface Verification {
  /** The operation in progress; empty if there is none. */
  readonly progress: string;
  /** Undefined until a verification has ended. */
  readonly verdict: ChainVerdict | undefined;
  readonly error: unknown;
  /**
   * Verifies an export with the keys in a file. If `exportFile` is null, verifies the current chain; if `keyFile` is
   * null, uses the published keys. `after` is the number of the record that precedes a partial export.
   */
  readonly verify: (exportFile: File | null, keyFile: File | null, after?: number) => Promise<void>;
  /** Saves the current chain as a file. */
  readonly download: () => Promise<void>;
}

/** Returns the verification of the chain of the tenant; leaving the page aborts it. */
export function useVerification(): Verification {
  const { api, caller } = useSession();
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
    setProgress('Reading the chain');
    try {
      await work(attempt.signal);
    } catch (failure) {
      if (!attempt.signal.aborted) setError(failure);
    }
    if (!attempt.signal.aborted) setProgress('');
  };
  const chain = (signal: AbortSignal): Promise<string[]> =>
    downloadChain(api, (lines) => setProgress(`${lines} lines read`), signal);
  return {
    progress,
    verdict,
    error,
    verify: (exportFile, keyFile, after) =>
      run(async (signal) => {
        const lines = exportFile === null ? await chain(signal) : linesOf(await exportFile.text());
        setProgress(`Verifying ${lines.length} lines`);
        const jwks = keyFile === null ? await publishedKeys(api) : await keyFile.text();
        setVerdict(await verifyChain(lines, jwks, after));
      }),
    download: () =>
      run(async (signal) => {
        const lines = await chain(signal);
        save(`writ-audit-${caller?.tenant ?? 'tenant'}.jsonl`, `${lines.join('\n')}\n`);
      }),
  };
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
