import { chromium, type Browser, type BrowserContextOptions, type Response } from 'playwright-core'
import type { Owner } from './owner.ts'
import { chromiumProgram } from '../runner/system-parts.ts'
import { transcript } from './secrets.ts'

/** The part of a tap test that a browser needs: it reports what the page does wrong. */
export type BrowserOwner = Owner & { fail(message: string): unknown }

/** How a browser looks at the product. */
export type BrowserOptions = BrowserContextOptions & {
  /** Origins that pages may load from (a server's base URLs); any other fails the test. */
  origins: readonly string[]
  /** Console errors that the test expects, for instance Chromium's own line about a 404. */
  expectedErrors?: readonly RegExp[]
}

/** A fresh profile in Chromium with one page; everything ends with the test. */
export type TestBrowser = Awaited<ReturnType<typeof openBrowser>>

/** What every Chromium of a test is started with. */
export const CHROMIUM_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Nothing may leave this machine, whatever a page asks for.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE *.localhost',
]

/** Environment variable by which test/run.ts hands its Chromium to every test file. */
export const SHARED_BROWSER = 'GATEHOUSE_TEST_BROWSER'

/** Starts the Chromium of a run; `wsEndpoint()` is its address. */
export function startChromium() {
  return chromium.launchServer(launchOptions())
}

function launchOptions() {
  const executablePath = chromiumProgram()
  if (executablePath === undefined) {
    throw new Error('Chromium is missing: install it, or on Debian chromium-headless-shell')
  }
  return { executablePath, args: CHROMIUM_ARGS }
}

let shared: Promise<Browser> | undefined

/** The run's Chromium, else, for a file that runs alone, one that ends with the file. */
async function openShared() {
  const given = process.env[SHARED_BROWSER]
  const browser = await (given === undefined
    ? chromium.launch(launchOptions())
    : chromium.connect(given))
  // Loaded here only: importing tap in the runner would print a TAP report of its own.
  const { t } = await import('tap')
  t.teardown(() => {
    shared = undefined
    return browser.close()
  })
  return browser
}

/**
 * Opens Chromium on one fresh page. An uncaught error in a page, an error on its console (violations
 * of the content security policy are written there) and a request to an origin that is not listed
 * fail the test at once.
 */
export async function openBrowser(t: BrowserOwner, options: BrowserOptions) {
  const { origins, expectedErrors = [], ...contextOptions } = options
  shared ??= openShared()
  const context = await (await shared).newContext(contextOptions)
  const own = new Set(origins.map((origin) => new URL(origin).origin))
  let [recording, ended] = [true, false]
  t.teardown(async () => {
    ended = true
    await context.close()
  })
  const fail = (message: string) => {
    if (!ended) t.fail(message)
  }

  context.on('weberror', (error) => fail(`uncaught error in the page: ${error.error().message}`))
  context.on('console', (message) => {
    const text = message.text()
    if (message.type() !== 'error' || expectedErrors.some((pattern) => pattern.test(text))) return
    fail(`error on the page's console: ${text}`)
  })
  context.on('request', (request) => {
    if (isForeign(request, own)) fail(`request to another origin: ${request.url()}`)
  })
  context.on('page', (page) => {
    page.on('websocket', (socket) => {
      if (isForeign(socket, own)) fail(`WebSocket to another origin: ${socket.url()}`)
    })
  })
  context.on('response', (response) => {
    if (recording) void record(response)
  })
  return {
    context,
    page: await context.newPage(),
    /** A further page of the same profile. */
    newPage: () => context.newPage(),
    /** Keeps what pages show meanwhile out of the transcript: a token shown once. */
    async secretShown<T>(body: () => Promise<T>) {
      recording = false
      try {
        return await body()
      } finally {
        recording = true
      }
    },
  }
}

function isForeign(request: { url(): string }, own: ReadonlySet<string>) {
  const { protocol, origin } = new URL(request.url().replace(/^ws/, 'http'))
  return protocol.startsWith('http') && !own.has(origin)
}

async function record(response: Response) {
  const type = response.headers()['content-type'] ?? ''
  // Scripts and style sheets are files of the repository: their bodies cost much and can't hold a secret.
  if (!/html|json|text\/plain/.test(type)) return
  try {
    transcript('html', Buffer.concat([Buffer.from('\n---\n'), await response.body()]))
  } catch {
    // A redirect has no body, and a page that was left takes its own away.
  }
}
