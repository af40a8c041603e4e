/** Environment variable by which `test/run.ts --long` asks for the long form of the faults. */
export const LONG_FAULTS = 'GATEHOUSE_TEST_LONG_FAULTS'

/** How much of a fault: the short form is part of every run, the long one is on demand. */
export function extent<T>(forms: { readonly short: T; readonly long: T }): T {
  return process.env[LONG_FAULTS] === undefined ? forms.short : forms.long
}
