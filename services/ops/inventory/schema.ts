import Type from 'typebox'
import { isObject, objectsOf, objectOf } from '../../../kernel/json.ts'
import { fits, mismatchOf } from '../../../kernel/validate.ts'
import { Argv, Path } from '../checks/check.ts'
import { Check } from '../checks/run.ts'

const Name = Type.String({ minLength: 1, maxLength: 200 })
const closed = { additionalProperties: false }

/** Something that tier 3 may do to a service. */
export const Operation = Type.Object(
  {
    name: Name,
    /** `restart`, `redeployment`, or another type with a cooldown of its own. */
    action_type: Name,
    argv: Argv,
    min_tier: Type.Optional(Type.Integer({ minimum: 1, maximum: 3 })),
    cooldown: Type.Optional(
      Type.Object(
        { count: Type.Integer({ minimum: 0 }), window_s: Type.Integer({ minimum: 1 }) },
        closed,
      ),
    ),
    /** Name of a check of the service that must pass afterwards. */
    verify: Type.Optional(Name),
    timeout_s: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 600 })),
  },
  closed,
)
export type Operation = Type.Static<typeof Operation>

export const Service = Type.Object(
  {
    name: Name,
    description: Type.Optional(Type.String({ maxLength: 2_000 })),
    checks: Type.Array(Check, { maxItems: 200 }),
    operations: Type.Optional(Type.Array(Operation, { maxItems: 50 })),
  },
  closed,
)
export type Service = Type.Static<typeof Service>

/** A command that tier 2 may run, with further arguments of the model's choice. */
export const ReadonlyCommand = Type.Object(
  {
    argv: Argv,
    /** Whether it may reach the network and the sockets of other programs; false when absent. */
    network: Type.Optional(Type.Boolean()),
  },
  closed,
)
export type ReadonlyCommand = Type.Static<typeof ReadonlyCommand>

/** The file that `OPS_INVENTORY` names (decisions.md section 5, Inventory). */
export const Inventory = Type.Object(
  {
    services: Type.Array(Service, { maxItems: 1_000 }),
    /** Folders in which tier 2 may read files, beside the repositories. */
    roots: Type.Optional(Type.Array(Path)),
    /** A list of words is a command without the network. */
    readonly: Type.Optional(Type.Array(Type.Union([Argv, ReadonlyCommand]))),
  },
  closed,
)
export type Inventory = Type.Static<typeof Inventory>

/** Where an inventory is wrong and what is expected there; undefined if it is right. */
export function schemaProblem(value: unknown): string | undefined {
  if (fits(Inventory, value)) return undefined
  const { path } = mismatchOf(Inventory, value)
  // The error of a union is that of its first branch: the value tells which branch was meant.
  const [at, service, check] = /^\/services\/(\d+)\/checks\/(\d+)/.exec(path) ?? []
  if (at !== undefined) return checkProblem(value, at, Number(service), Number(check))
  const [where, command] = /^\/readonly\/(\d+)/.exec(path) ?? []
  if (where !== undefined) return commandProblem(value, where, Number(command))
  return problemAt('', Inventory, value)
}

function checkProblem(value: unknown, where: string, service: number, index: number): string {
  const { services } = objectOf(value)
  const { checks } = objectsOf(services)[service] ?? {}
  const check = objectsOf(checks)[index] ?? {}
  const schema = Check.anyOf.find(({ properties }) => properties.type.const === check['type'])
  if (schema !== undefined) return problemAt(where, schema, check)
  const types = Check.anyOf.map(({ properties }) => properties.type.const).join(', ')
  return `${where}/type must be one of ${types}`
}

function commandProblem(value: unknown, where: string, index: number): string {
  const { readonly: commands } = objectOf(value)
  const command: unknown = Array.isArray(commands) ? commands[index] : undefined
  if (isObject(command)) return problemAt(where, ReadonlyCommand, command)
  return `${where} must be a list of words, or an object with argv and network`
}

function problemAt(where: string, schema: Type.TSchema, value: unknown): string {
  const { path, message } = mismatchOf(schema, value)
  return `${`${where}${path}` || 'the whole'} ${message}`
}
