import Type from 'typebox'
import { Compile } from 'typebox/compile'
import { lazy } from '../../../kernel/lazy.ts'
import type { Log } from '../../../kernel/log.ts'
import { followJsonFile, type FileKind } from '../json-file.ts'
import type { Usage } from './model-stream.ts'

const Amount = Type.Number({ minimum: 0 })
const Price = Type.Object(
  {
    input: Amount,
    output: Amount,
    /** Of input that the endpoint had in its cache; as `input` when absent. */
    cached_input: Type.Optional(Amount),
  },
  { additionalProperties: false },
)
/** What a model costs, in US dollars a million tokens. */
export type Price = Type.Static<typeof Price>

/** The file that `OPS_PRICES` names: a price by the model's name. */
const Prices = Type.Record(Type.String(), Price)
type Prices = Type.Static<typeof Prices>
const schema = lazy(() => Compile(Prices))

/** The price table as it stands; read again when its file has changed. */
export interface PriceSource {
  /** Undefined for a model that the table does not name. */
  of(model: string): Promise<Price | undefined>
}

/** The file that `OPS_PRICES` names. */
export const PRICES_FILE: FileKind<Prices> = { what: 'Price table', read: readPrices }

/** Follows the price table. Throws for one that can't be read or is wrong, when it is first read. */
export async function openPrices(file: () => string | undefined, log: Log): Promise<PriceSource> {
  const written = await followJsonFile(PRICES_FILE, file, log)
  return {
    async of(model) {
      const prices = (await written()) ?? {}
      return Object.hasOwn(prices, model) ? prices[model] : undefined
    },
  }
}

/** What that many tokens cost, in US dollars. */
export function costOf(price: Price, { prompt, cached, completion }: Usage): number {
  const fresh = (prompt - cached) * price.input + cached * (price.cached_input ?? price.input)
  return (fresh + completion * price.output) / 1_000_000
}

function readPrices(value: unknown): Prices {
  if (schema().Check(value)) return value
  const [first] = schema().Errors(value)
  const where = first?.instancePath === '' ? 'its top' : first?.instancePath
  throw new SyntaxError(`is wrong at ${where}: ${first?.message}`)
}
