/** The UTC day of a moment, `YYYY-MM-DD`: the one that a tenant's daily cap counts in (EM-3). */
export function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10);
}

/** The UTC month of a day, `YYYY-MM`. */
export function monthOf(day: string): string {
  return day.slice(0, 7);
}
