// The settings of the extension, and calls of the API of links.

/** The settings; undefined until there are some. */
export async function readSettings() {
  const { settings } = await chrome.storage.local.get('settings')
  return settings
}

export async function saveSettings(settings) {
  await chrome.storage.local.set({ settings })
}

/** The address of a Gatehouse as it is kept, without a slash at its end; undefined for other text. */
export function readBase(text) {
  const url = URL.parse(text.trim())
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

const TIMEOUT_MS = 15_000

/**
 * The answer of the API. What fails is an Error with a line for people, and the status where there
 * is one.
 */
export async function callApi({ base, token }, method, path, body) {
  const headers = { authorization: `Bearer ${token}` }
  if (body !== undefined) headers['content-type'] = 'application/json'
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const request = { method, headers, cache: 'no-store', credentials: 'omit', signal }
  let response
  try {
    response = await fetch(`${base}/api/v1${path}`, { ...request, body: JSON.stringify(body) })
  } catch {
    throw new Error(`${base} could not be reached. Check the address in the settings.`)
  }
  const answer = await response.json().catch(() => undefined)
  const { ok, status } = response
  if (ok && answer !== undefined) return answer
  // A login before Gatehouse answers with its page.
  if (ok) throw new Error(`What answers at ${base} is not the API of Gatehouse.`)
  throw Object.assign(new Error(describeFailure(status, answer)), { status })
}

function describeFailure(status, answer) {
  if (status === 401) return 'The token is not valid. Enter another one in the settings.'
  const error = answer?.error
  const text = typeof error === 'string' ? error : `the server answered ${status}`
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}
