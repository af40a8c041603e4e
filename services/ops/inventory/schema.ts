import Type from 'typebox'

const Name = Type.String({ minLength: 1, maxLength: 200 })
const Host = Type.String({ minLength: 1, maxLength: 253 })
const Port = Type.Integer({ minimum: 1, maximum: 65_535 })
const Path = Type.String({ pattern: '^/' })
const Argv = Type.Array(Type.String(), { minItems: 1 })
const Percent = Type.Number({ exclusiveMinimum: 0, maximum: 100 })
const closed = { additionalProperties: false }

/** What every check has; `level` is that of the event when it fails, if it is not the usual one. */
const common = {
  name: Type.Optional(Name),
  timeout_s: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 60 })),
  level: Type.Optional(Type.Enum(['info', 'warning', 'critical'])),
}

export const HttpCheck = Type.Object(
  {
    type: Type.Literal('http'),
    url: Type.String({ pattern: '^https?://' }),
    /** Any of 200 to 399 when absent. */
    status: Type.Optional(Type.Integer({ minimum: 100, maximum: 599 })),
    contains: Type.Optional(Type.String()),
    ...common,
  },
  closed,
)
export const TcpCheck = Type.Object(
  { type: Type.Literal('tcp'), host: Host, port: Port, ...common },
  closed,
)
export const TlsCheck = Type.Object(
  {
    type: Type.Literal('tls'),
    host: Host,
    port: Type.Optional(Port),
    /** How many days the certificate must still be valid; 14 when absent. */
    days: Type.Optional(Type.Integer({ minimum: 0 })),
    ...common,
  },
  closed,
)
export const DnsCheck = Type.Object(
  {
    type: Type.Literal('dns'),
    host: Host,
    /** An address that must be among those found. */
    address: Type.Optional(Type.String()),
    ...common,
  },
  closed,
)
export const UnitCheck = Type.Object(
  {
    type: Type.Literal('unit'),
    /** A systemd unit that must be active; without one, no unit may have failed. */
    unit: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9:_.\\\\@-]+$' })),
    ...common,
  },
  closed,
)
export const ProcessCheck = Type.Object(
  {
    type: Type.Literal('process'),
    /** Text in the command line of a process that must run. */
    match: Type.Optional(Type.String({ minLength: 1 })),
    /** Name or path of its executable, which its arguments can't feign. One of the two must be given. */
    program: Type.Optional(Type.String({ minLength: 1 })),
    ...common,
  },
  closed,
)
export const DiskCheck = Type.Object(
  { type: Type.Literal('disk'), path: Path, max_percent: Type.Optional(Percent), ...common },
  closed,
)
export const MemoryCheck = Type.Object(
  { type: Type.Literal('memory'), max_percent: Type.Optional(Percent), ...common },
  closed,
)
export const LoadCheck = Type.Object(
  {
    type: Type.Literal('load'),
    /** Of the last five minutes, for each processor. */
    max_per_cpu: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
    ...common,
  },
  closed,
)
export const FileAgeCheck = Type.Object(
  {
    type: Type.Literal('file_age'),
    path: Path,
    max_age_s: Type.Number({ exclusiveMinimum: 0 }),
    /** How large the file must be: an empty backup is none. Any size will do when absent. */
    min_bytes: Type.Optional(Type.Integer({ minimum: 0 })),
    ...common,
  },
  closed,
)
export const CommandCheck = Type.Object(
  {
    type: Type.Literal('command'),
    argv: Argv,
    exit_code: Type.Optional(Type.Integer({ minimum: 0, maximum: 255 })),
    contains: Type.Optional(Type.String()),
    ...common,
  },
  closed,
)

export const Check = Type.Union([
  HttpCheck,
  TcpCheck,
  TlsCheck,
  DnsCheck,
  UnitCheck,
  ProcessCheck,
  DiskCheck,
  MemoryCheck,
  LoadCheck,
  FileAgeCheck,
  CommandCheck,
])
export type Check = Type.Static<typeof Check>

/** Something that tier 3 may do to a service, by name and never by a shell. */
export const Operation = Type.Object(
  {
    name: Name,
    /** `restart`, `redeployment`, or another kind with a cooldown of its own. */
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

/** A command that tier 2 may run, with whatever arguments the model adds. */
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
    /** Folders that tier 2 may read files in, beside the repositories. */
    roots: Type.Optional(Type.Array(Path)),
    /** A list of words is a command without the network. */
    readonly: Type.Optional(Type.Array(Type.Union([Argv, ReadonlyCommand]))),
  },
  closed,
)
export type Inventory = Type.Static<typeof Inventory>
