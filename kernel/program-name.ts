import { inExecutable } from './assets.ts'

/** How an operator calls this program: as what is installed, or by npm in its folder. */
export const PROGRAM_NAME = inExecutable ? 'gatehouse' : 'npx gatehouse'
