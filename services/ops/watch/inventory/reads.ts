import * as Type from '../../../../kernel/schema.ts'
import { HttpAddress, Path, type Mistake } from '../checks/check.ts'
import { ContainerName } from '../checks/container-api.ts'
import { areHeaders } from '../checks/http.ts'

// What tier 2 may read beside files and addresses: logs of services, and sources that are asked.

const Name = Type.String({ minLength: 1, maxLength: 200 })
const closed = { additionalProperties: false }

/** No dash at its beginning and no wildcard: journalctl would take more than one unit. */
export const UnitName = Type.String({
  minLength: 1,
  maxLength: 256,
  pattern: String.raw`^[\w:.\\@][\w:.\\@-]*$`,
  description: 'the name of a systemd unit, such as nginx.service',
})

/** A log of a service: of a systemd unit, or of a container. */
export const ServiceLog = Type.Object(
  {
    /** The unit or the container when absent. */
    name: Type.Optional(Name),
    unit: Type.Optional(UnitName),
    container: Type.Optional(ContainerName),
    /** Of the API of containers. */
    socket: Type.Optional(Path),
  },
  closed,
)
export type ServiceLog = Type.Static<typeof ServiceLog>

/** A server of metrics or of logs that is asked in its own language. */
export const Source = Type.Object(
  {
    name: Name,
    type: Type.Unsafe<'prometheus' | 'loki'>({ enum: ['prometheus', 'loki'] }),
    /** Where its API begins, such as `http://127.0.0.1:9090`. */
    url: HttpAddress,
    description: Type.Optional(Type.String({ maxLength: 1_000 })),
    /** They may have secrets, so they are shown nowhere. */
    headers: Type.Optional(Type.Record(Type.String(), { maxProperties: 20 })),
    timeout_s: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 60 })),
  },
  closed,
)
export type Source = Type.Static<typeof Source>

/** How a log is named in calls. */
export function logName({ name, unit, container }: ServiceLog): string {
  return name ?? unit ?? container ?? ''
}

/** What is wrong with a log that fits the schema. */
export function logMistake({ unit, container, socket }: ServiceLog): Mistake | undefined {
  if ((unit === undefined) === (container === undefined)) {
    return ['', 'must have either unit or container']
  }
  return unit !== undefined && socket !== undefined
    ? ['/socket', 'must not be there with unit']
    : undefined
}

/** What is wrong with a source that fits the schema. */
export function sourceMistake({ url: text, headers = {} }: Source): Mistake | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  // The paths of the API are appended to it, and errors may show it.
  const isPlain = url?.username === '' && url.password === '' && !/[?#]/.test(url.href)
  if (!isPlain) return ['/url', 'must be a URL without user, password, ? and #']
  return areHeaders(headers)
    ? undefined
    : ['/headers', 'must be names of HTTP headers with values of one line']
}

/** A header that names a tenant: its value also stands in labels. */
const TENANT = 'x-scope-orgid'

/** The secrets of a source's headers, such as `Bearer …` and the token alone. */
export function headerSecrets({ headers = {} }: Source): readonly string[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    if (name.toLowerCase() === TENANT) return []
    return [value, value.slice(value.indexOf(' ') + 1)]
  })
}
