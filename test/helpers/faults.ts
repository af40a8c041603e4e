/** Environment variable by which `test/run.ts --long` asks for the long form of the faults and keeps calls. */
export const LONG_RUN = 'GATEHOUSE_TEST_LONG_RUN'

/** How much of a fault: the short form is part of every run, the long one is on demand. */
export function extent<T>(forms: { readonly short: T; readonly long: T }): T {
  return process.env[LONG_RUN] === undefined ? forms.short : forms.long
}
