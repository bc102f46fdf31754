/** Says where the time went: named laps, with what was spent waiting for a person left out. */
export function createStopwatch() {
  const laps: string[] = [];
  // Zero is when the process began, so that loading the program counts.
  let last = 0;
  let leftOut = 0;
  let shown = '';

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
      shown = `, ${name} ${seconds(milliseconds)}`;
    },

    report(): string {
      return `${laps.join(', ')}${shown}`;
    },
  };
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(2)} s`;
}
