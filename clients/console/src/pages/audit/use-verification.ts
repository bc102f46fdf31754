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
  /** Removes the verdict or error of the previous inputs, and aborts a verification in progress, but not a download. */
  readonly clear: () => void;
  /** Saves the current chain as a file. */
  readonly download: () => Promise<void>;
}

interface Operation {
  readonly kind: 'verification' | 'download';
  readonly controller: AbortController;
}

/** Returns the verification of the chain of the tenant; leaving the page aborts it. */
export function useVerification(): Verification {
  const { api, caller } = useSession();
  const [progress, setProgress] = useState('');
  const [verdict, setVerdict] = useState<ChainVerdict>();
  const [error, setError] = useState<unknown>();
  const running = useRef<Operation>(undefined);
  useEffect(() => () => running.current?.controller.abort(), []);

  const stop = (): void => {
    running.current?.controller.abort();
    running.current = undefined;
    setVerdict(undefined);
    setError(undefined);
    setProgress('');
  };
  const run = async (
    kind: Operation['kind'],
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> => {
    stop();
    const controller = new AbortController();
    const { signal } = controller;
    running.current = { kind, controller };
    setProgress('Reading the chain');
    try {
      await work(signal);
    } catch (failure) {
      if (!signal.aborted) setError(failure);
    }
    if (signal.aborted) return;
    running.current = undefined;
    setProgress('');
  };
  const report = (text: string, signal: AbortSignal): void => {
    signal.throwIfAborted();
    setProgress(text);
  };
  const chain = (signal: AbortSignal): Promise<string[]> =>
    downloadChain(api, (lines) => report(`${lines} lines read`, signal), signal);
  return {
    progress,
    verdict,
    error,
    verify: (exportFile, keyFile, after) =>
      run('verification', async (signal) => {
        const lines = exportFile === null ? await chain(signal) : linesOf(await exportFile.text());
        report(`Verifying ${lines.length} lines`, signal);
        const jwks = keyFile === null ? await publishedKeys(api) : await keyFile.text();
        const found = await verifyChain(lines, jwks, after);
        signal.throwIfAborted();
        setVerdict(found);
      }),
    clear: () => {
      if (running.current?.kind !== 'download') stop();
    },
    download: () =>
      run('download', async (signal) => {
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
