/** Returns minutes as hours and minutes. */
export function clock(minutes: number): string {
  const rest = minutes % 60;
  return `${Math.floor(minutes / 60)}:${rest < 10 ? "0" : ""}${rest}`;
}
