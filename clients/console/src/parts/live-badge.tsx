import { Badge } from '@mantine/core';

/** Shows whether the stream of a page is connected. `error` ended the stream, or persists across reconnections. */
export function LiveBadge({
  isLive,
  error,
}: {
  readonly isLive: boolean;
  readonly error: unknown;
}) {
  const state = isLive ? 'live' : error === undefined ? 'connecting' : 'disconnected';
  return (
    <Badge variant="dot" color={isLive ? 'green' : 'gray'} tt="none" fw={500}>
      {state}
    </Badge>
  );
}
