import { createClient, RESP_TYPES } from '@redis/client'

/** The ceiling: a loop of XREADGROUP and XACK over this many entries, by the client that the product uses. Gives ms. */
export async function readBare(
  url: string,
  stream: string,
  group: string,
  entries: number,
  most: number,
): Promise<number> {
  const client = createClient({
    url,
    RESP: 2,
    maintNotifications: 'disabled',
    commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.MAP]: Array } },
  })
  await client.connect()
  try {
    const started = performance.now()
    for (let left = entries; left > 0;) {
      const reply = await client.xReadGroup(
        group,
        'bare',
        { key: stream, id: '>' },
        { COUNT: most },
      )
      const messages = reply?.[0]?.messages ?? []
      if (messages.length === 0) throw new Error(`${left} entries are missing`)
      const ids = messages.flatMap((entry) => (entry === null ? [] : [entry.id]))
      await client.xAck(stream, group, ids)
      left -= ids.length
    }
    return performance.now() - started
  } finally {
    client.destroy()
  }
}
