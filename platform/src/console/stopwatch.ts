/** Says where the time went: named laps, with what was spent waiting for a person left out. */
export function createStopwatch() {
  const laps: string[] = [];
  // Zero is when the process began, so that loading the program counts.
  let last = 0;
  let leftOut = 0;
  const apart = new Map<string, number>();

  return {
    /** Ends a lap. */
    lap(name: string): void {
      const now = performance.now();
      laps.push(`${name} ${seconds(now - last - leftOut)}`);
      last = now;
      leftOut = 0;
    },

    /** Counts milliseconds apart from the lap under way. */
    leaveOut(name: string, milliseconds: number): void {
      leftOut += milliseconds;
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
