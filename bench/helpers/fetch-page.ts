import { get, type Agent } from 'node:http'

/** Reads a page to its end. Rejects when it is not answered with 200. */
export function fetchPage(
  address: string,
  agent: Agent,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  return new Promise((resolve, reject) => {
    get(address, { agent, headers }, (page) => {
      if (page.statusCode !== 200) reject(new Error(`${address}: ${page.statusCode}`))
      page.resume().on('end', resolve).on('error', reject)
    }).on('error', reject)
  })
}
