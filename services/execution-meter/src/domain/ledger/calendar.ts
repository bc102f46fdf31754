/** Returns the UTC day of a time as `YYYY-MM-DD`, the period of daily tenant caps (EM-3). */
export function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10);
}

/** Returns the UTC month of a day as `YYYY-MM`. */
export function monthOf(day: string): string {
  return day.slice(0, 7);
}
