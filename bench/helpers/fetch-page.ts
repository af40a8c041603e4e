import { get, type Agent } from 'node:http'

/** Reads a page to its end; it may be the one of an unknown link. Rejects other statuses. */
export function fetchPage(
  address: string,
  agent: Agent,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  return new Promise((resolve, reject) => {
    get(address, { agent, headers }, (page) => {
      if (page.statusCode !== 200 && page.statusCode !== 404)
        reject(new Error(`${address}: ${page.statusCode}`))
      page.resume().on('end', resolve).on('error', reject)
    }).on('error', reject)
  })
}
