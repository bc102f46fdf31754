/** Sanitizes a name from model output for messages and stop reasons: at most 64 printable ASCII characters. */
export function shownName(name: string): string {
  return name.replace(/[^\x20-\x7e]/g, '?').slice(0, 64);
}
