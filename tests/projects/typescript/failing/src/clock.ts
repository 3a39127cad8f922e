/** Returns minutes as hours and minutes. */
export function clock(minutes: number): string {
  const rest: string = minutes % 60;
  return `${Math.floor(minutes / 60)}:${rest}`;
}
