/** Measures named laps, excluding the time spent waiting for a person. */
export function createStopwatch() {
  const laps: string[] = [];
  // Zero is the start of the process, so that loading the program is included.
  let last = 0;
  let excluded = 0;
  const apart = new Map<string, number>();

  return {
    /** Ends a lap. */
    lap(name: string): void {
      const now = performance.now();
      laps.push(`${name} ${seconds(now - last - excluded)}`);
      last = now;
      excluded = 0;
    },

    /** Adds milliseconds that the current lap excludes. */
    exclude(name: string, milliseconds: number): void {
      excluded += milliseconds;
      apart.set(name, (apart.get(name) ?? 0) + milliseconds);
    },

    report(): string {
      return [...laps, ...Array.from(apart, ([name, spent]) => `${name} ${seconds(spent)}`)].join(
        ', ',
      );
    },
  };
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(2)} s`;
}
