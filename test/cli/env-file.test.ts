import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t } from 'tap'
import { request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { secret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { codeHostHeaders } from '../helpers/sign.ts'
import { until } from '../helpers/until.ts'

t.test(
  'a changed environment file counts without a restart; a broken one changes nothing',
  async (t) => {
    const file = join(await temporaryFolder(t, 'env'), 'gatehouse.env')
    const [first, second] = [secret('first'), secret('second')]
    /** As an editor or a deployment does it: a new file takes the old one's name. */
    async function change(text: string): Promise<void> {
      await writeFile(`${file}.new`, text)
      await rename(`${file}.new`, file)
    }
    await change('HOOKS_FRESHNESS_S=100\n')
    const env = { GATEHOUSE_ENV_FILE: file }
    const { hooks, logs } = await startServer(t, { services: ['hooks'], env })
    let count = 0
    const delivery = async (key: string): Promise<number> => {
      // A body of its own each time: a known delivery would be answered like the first one.
      const body = JSON.stringify({ count: (count += 1) })
      const headers = { 'Content-Type': 'application/json', ...(await codeHostHeaders(key, body)) }
      return (await request(`${hooks}/webhooks/code_host`, { method: 'POST', headers, body }))
        .status
    }
    const answers = (key: string, status: number): Promise<unknown> =>
      until(async () => (await delivery(key)) === status, `an answer ${status}`)
    const kept = (): readonly string[] =>
      logs().filter((line) => line.includes('configuration not re-read'))

    t.equal(await delivery(first), 404, 'not configured')
    await change(`HOOKS_CODE_HOST_SECRET=${first}\n`)
    await answers(first, 202)
    await change(`HOOKS_CODE_HOST_SECRET=${second}\n`)
    await answers(second, 202)
    t.equal(await delivery(first), 401, 'the former secret is retired')
    await until(async () => {
      const { text } = await request(`${hooks}/log?rejected=1`)
      return text.includes('matches a retired secret')
    }, 'the reason of that refusal')

    await change(`HOOKS_CODE_HOST_SECRET=${first}\nHOOKS_FRESHNESS_S=never\n`)
    await until(() => kept().length === 1, 'the log to say that it was not taken')
    t.match(kept()[0], 'HOOKS_FRESHNESS_S')
    t.equal(await delivery(second), 202, 'the former configuration stays')
    t.equal(await delivery(first), 401)
    await change(`HOOKS_CODE_HOST_SECRET=${first}\nHOOKS_NONSENSE=1\n`)
    await until(() => kept().length === 2, 'the log to name the unknown variable')
    t.match(kept()[1], 'HOOKS_NONSENSE')
    t.equal(await delivery(second), 202)

    await change(`HOOKS_CODE_HOST_SECRET=${first}\nHOOKS_CODE_HOST_SECRET_PREVIOUS=${second}\n`)
    await answers(first, 202)
    t.equal(await delivery(second), 202, 'the previous secret is accepted beside it')
    await change('\n')
    await answers(first, 404)
  },
)
