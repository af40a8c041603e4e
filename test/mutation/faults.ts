/** A small fault, put into the sources to see that some test fails. */
export type FaultValue = {
  /** What the program does then. */
  readonly fault: string
  readonly file: string
  /** Stands in the file exactly once. */
  readonly find: string
  readonly replace: string
  /** For SQL, which has no coverage: `FILE#FUNCTION` that runs the query. */
  readonly runBy?: string
}

export const FAULTS: readonly FaultValue[] = [
  {
    fault: 'stale deliveries pass one second too long',
    file: 'services/hooks/schemes.ts',
    find: 'Math.abs(age) <= freshness',
    replace: 'Math.abs(age) <= freshness + 1',
  },
  {
    fault: 'deliveries from the future are fresh',
    file: 'services/hooks/schemes.ts',
    find: 'Math.abs(age) <= freshness',
    replace: 'age <= freshness',
  },
  {
    fault: 'only the last of several signatures counts',
    file: 'services/hooks/schemes.ts',
    find: 'found = timingSafeEqual(expected, signature) || found',
    replace: 'found = timingSafeEqual(expected, signature)',
  },
  {
    fault: 'signature may have upper-case hex',
    file: 'services/hooks/schemes.ts',
    find: '/^[0-9a-f]{64}$/.test(hex)',
    replace: '/^[0-9a-fA-F]{64}$/.test(hex)',
  },
  {
    fault: 'two times in a payments signature are accepted',
    file: 'services/hooks/schemes.ts',
    find: 'times.length > 1 || ',
    replace: '',
  },
  {
    fault: 'webhook-id with a dot is accepted',
    file: 'services/hooks/schemes.ts',
    find: '/^[\\x21-\\x2d\\x2f-\\x7e]+$/',
    replace: '/^[\\x21-\\x7e]+$/',
  },
  {
    fault: 'signing secrets of 16 bytes are accepted',
    file: 'services/hooks/secrets.ts',
    find: 'key.length >= 24 && key.length <= 64',
    replace: 'key.length >= 16 && key.length <= 64',
  },
  {
    fault: 'the token in the query wins over the header',
    file: 'services/hooks/secrets.ts',
    find: "  if (typeof header === 'string') return header\n  const query = search.includes('token=') ? new URLSearchParams(search).get('token') : null\n  return query ?? path",
    replace:
      "  const query = search.includes('token=') ? new URLSearchParams(search).get('token') : null\n  if (typeof header === 'string') return query ?? header\n  return query ?? path",
  },
  {
    fault: 'the previous token is accepted for ever',
    file: 'services/hooks/deliveries.ts',
    find: 'if (previous && acceptsPrevious(row, receivedAt)) return',
    replace: 'if (previous) return',
  },
  {
    fault: 'a handshake of chat is stored as an event',
    file: 'services/hooks/deliveries.ts',
    find: "if (provider === 'chat' && members['type'] === 'url_verification') {",
    replace: "if (provider === 'chat' && members['type'] === 'never') {",
  },
  {
    fault: 'a token in the query of a Referer is stored',
    file: 'services/hooks/redact.ts',
    find: ': redactUrlTokens(text)',
    replace: ': text',
  },
  {
    fault: 'cookie headers are stored',
    file: 'services/hooks/redact.ts',
    find: '|auth|cookie|',
    replace: '|auth|',
  },
  {
    fault: 'a replay passes the stored Connection headers on',
    file: 'services/hooks/outgoing.ts',
    find: '      !named.includes(name) &&\n',
    replace: '',
  },
  {
    fault: 'a replay may go to a URL with a password',
    file: 'services/hooks/outgoing.ts',
    find: "url.username === '' && url.password === ''",
    replace: "url.username === ''",
  },
  {
    fault: 'retention keeps one event too many',
    file: 'sql/hooks/settings.sql',
    find: '   where id <= coalesce((select id from hooks.events order by id desc offset :keep limit 1), 0)',
    replace:
      '   where id < coalesce((select id from hooks.events order by id desc offset :keep limit 1), 0)',
    runBy: 'services/hooks/settings.ts#run',
  },
  {
    fault: 'repeated deliveries do not count',
    file: 'sql/hooks/deliveries.sql',
    find: 'do update set attempts = hooks.events.attempts + excluded.attempts',
    replace: 'do update set attempts = hooks.events.attempts',
    runBy: 'services/hooks/ingest.ts#commit',
  },
  {
    fault: 'ids of events are drawn without the lock',
    file: 'sql/hooks/deliveries.sql',
    find: '  select pg_advisory_xact_lock(7203001)\n',
    replace: '  select 1\n',
    runBy: 'services/hooks/ingest.ts#commit',
  },
  {
    fault: 'a filter by provider and type ignores the provider',
    file: 'sql/hooks/events.sql',
    find: '   and (:provider::text is null or provider = :provider)\n order by received_at desc, id desc\n limit :limit;',
    replace: ' order by received_at desc, id desc\n limit :limit;',
    runBy: 'services/hooks/events.ts#listPage',
  },
  {
    fault: 'a failing row fails the deliveries beside it',
    file: 'services/hooks/ingest.ts',
    find: 'if (error instanceof QueryError && batch.length > 1) return saveEach(batch)',
    replace: 'if (error instanceof QueryError && batch.length > 9999) return saveEach(batch)',
  },
  {
    fault: 'the stream skips the gap message',
    file: 'services/hooks/stream.ts',
    find: 'if (notice !== undefined) sink.write(notice)',
    replace: 'if (notice !== undefined && sink.closed) sink.write(notice)',
  },
  {
    fault: 'the burst alarm fires one refusal late',
    file: 'services/hooks/alarms.ts',
    find: 'provider.rejected_count >= burst',
    replace: 'provider.rejected_count > burst',
  },
  {
    fault: 'a forwarder may answer more than it was sent',
    file: 'services/hooks/forward/session.ts',
    find: 'if (message === undefined || unanswered === MAX_UNANSWERED) return endBreach()',
    replace: 'if (message === undefined) return endBreach()',
  },
  {
    fault: 'recipients may change a link',
    file: 'services/links/links.ts',
    find: "(purpose === 'read' && link.is_recipient)",
    replace: 'link.is_recipient',
  },
  {
    fault: 'admins have no access to the links of others',
    file: 'services/links/links.ts',
    find: "return link.is_owner || caller.role === 'admin'",
    replace: 'return link.is_owner',
  },
  {
    fault: 'the primary owner can be removed',
    file: 'services/links/members.ts',
    find: 'if (removed.is_primary) {',
    replace: 'if (removed.is_primary && link.owners.length > 99) {',
  },
  {
    fault: 'expired tokens are accepted when created',
    file: 'services/links/tokens.ts',
    find: 'if (at !== null && at <= now) {',
    replace: 'if (at !== null && at < new Date(0)) {',
  },
  {
    fault: 'another user may revoke a token',
    file: 'services/links/tokens.ts',
    find: 'q.removeToken(db, { id, user })',
    replace: 'q.removeToken(db, { id, user: null })',
  },
  {
    fault: 'slugs may have 65 characters',
    file: 'services/links/slug.ts',
    find: 'return text.length <= MAX_SLUG &&',
    replace: 'return text.length <= MAX_SLUG + 1 &&',
  },
  {
    fault: 'links may lead back to themselves',
    file: 'services/links/loop.ts',
    find: 'if (visits.some(({ asked }) => slugsMeant(asked).includes(slug))) {',
    replace: 'if (visits.length > 99) {',
  },
  {
    fault: 'a URL with a user name is accepted',
    file: 'services/links/target.ts',
    find: "username !== '' || password !== '' || ",
    replace: "password !== '' || ",
  },
  {
    fault: 'a query of a visit is put beside the same parameter',
    file: 'services/links/target.ts',
    find: '!namesOf(pair).some((name) => added.has(name))',
    replace: 'true',
  },
  {
    fault: 'clicks are written twice after a lost answer',
    file: 'services/links/clicks.ts',
    find: 'q.saveClicks(db, { clicks, ...number, at',
    replace: 'q.saveClicks(db, { clicks, ...number, batch: Date.now(), at',
  },
  {
    fault: 'a secure link redirects everybody',
    file: 'routes/links/visits.ts',
    find: 'if (link.isSecure && !(await mayRead(resolver, link, visitor))) {',
    replace: "if (link.isSecure && link.slug === '') {",
  },
  {
    fault: 'private links of others stand in lists',
    file: 'services/links/lists.ts',
    find: "visitor.role === 'admin' ? 'every' : 'visible'",
    replace: "'every'",
  },
  {
    fault: 'any ETag matches',
    file: 'kernel/http/headers.ts',
    find: 'some((tag) => tag.trim() === etag)',
    replace: "some((tag) => tag.trim() !== '')",
  },
  {
    fault: 'text that turns direction is a name of a token',
    file: 'services/links/tokens.ts',
    find: '!TURNS_TEXT.test(text)',
    replace: "text !== ''",
  },
  {
    fault: '..-segments of a visit are passed on',
    file: 'services/links/visits.ts',
    find: 'text === undefined || /^\\.\\.?(;|$)/.test(text)',
    replace: 'text === undefined',
  },
  {
    fault: 'every tier has all tools',
    file: 'services/ops/tools/toolbox.ts',
    find: 'tool.tier <= tier',
    replace: 'tool.tier <= 3',
  },
  {
    fault: 'one operation more than the cooldown allows',
    file: 'services/ops/operations.ts',
    find: 'if (count >= most) {',
    replace: 'if (count > most) {',
  },
  {
    fault: 'operations of two sessions do not wait for each other',
    file: 'services/ops/operations.ts',
    find: '    await q.lockAdmission(tx, {})\n',
    replace: '',
  },
  {
    fault: 'a dry run runs the operation',
    file: 'services/ops/operations.ts',
    find: 'if (await dryRun(tx)) {',
    replace: 'if ((await dryRun(tx)) && operation.argv.length === 0) {',
  },
  {
    fault: 'files outside the roots can be read through a link',
    file: 'services/ops/tools/files.ts',
    find: '  refuseOutside(real, roots)\n',
    replace: '',
  },
  {
    fault: 'a folder with the same beginning is inside a root',
    file: 'services/ops/tools/files.ts',
    find: 'path.startsWith(root.endsWith(sep) ? root : root + sep)',
    replace: 'path.startsWith(root)',
  },
  {
    fault: 'secrets in base64 are shown',
    file: 'services/ops/redact.ts',
    find: '    ...[0, 1, 2].flatMap((before) => base64At(bytes, before)),\n',
    replace: '',
  },
  {
    fault: 'an alert starts a second session',
    file: 'services/ops/alerts/receive.ts',
    find: 'if (running || newest > work.newest)',
    replace: 'if (newest > work.newest)',
  },
  {
    fault: 'an alert with the same key and another time is a new one',
    file: 'services/ops/alerts/payload.ts',
    find: 'fingerprint: key === undefined ? content :',
    replace: 'fingerprint: key === undefined || content ? content :',
  },
  {
    fault: 'memories of 11,000 characters are taken',
    file: 'services/ops/memories.ts',
    find: 'text(10_000)',
    replace: 'text(11_000)',
  },
  {
    fault: 'confidence above 1 is taken',
    file: 'services/ops/memories.ts',
    find: 'Type.Number({ minimum: 0, maximum: 1 })',
    replace: 'Type.Number({ minimum: 0, maximum: 2 })',
  },
  {
    fault: 'the same words are told twice',
    file: 'services/ops/tools/records.ts',
    find: "  if (same) return 'the same words were sent today'\n",
    replace: '',
  },
  {
    fault: 'a session tier above the limit is started',
    file: 'services/ops/sessions/sessions.ts',
    find: 'const tier = Math.min(request.tier, config.current.max_tier)',
    replace: 'const tier = request.tier',
  },
  {
    fault: 'a page of another site may post a form',
    file: 'kernel/net/guard.ts',
    find: "method !== 'GET' && method !== 'HEAD' && isCrossSite(headers)",
    replace: "method === 'PUT' && isCrossSite(headers)",
  },
  {
    fault: 'any Host is served',
    file: 'kernel/net/guard.ts',
    find: 'if (!isLoopbackName(name) && !hosts.has(name)) {',
    replace: "if (name === '') {",
  },
  {
    fault: 'a request that a proxy passed on counts as local',
    file: 'kernel/net/guard.ts',
    find: 'if (sign !== undefined) return untrustedProxy(sign)',
    replace: 'if (sign === undefined && !isLoopback(peer)) return untrustedProxy(peer)',
  },
  {
    fault: 'quotes are not escaped in pages',
    file: 'kernel/html.ts',
    find: '/[&<>"\']/g',
    replace: '/[&<>]/g',
  },
  {
    fault: 'a body of exactly the limit is too large',
    file: 'kernel/http/body.ts',
    find: 'if (reading.size > limit) return settle',
    replace: 'if (reading.size >= limit) return settle',
  },
  {
    fault: 'an address of a private network counts as public',
    file: 'kernel/net/addresses.ts',
    find: "  '172.16.0.0/12',\n",
    replace: '',
  },
  {
    fault: 'cursors in other letters are accepted',
    file: 'kernel/text.ts',
    find: 'Array.isArray(value) && encodeCursor(value) === text ?',
    replace: 'Array.isArray(value) ?',
  },
  {
    fault: 'lines of a message are not split in the event stream',
    file: 'kernel/http/sse.ts',
    find: 'frame.data.split(/\\r\\n|\\r|\\n/)',
    replace: 'frame.data.split(/\\r\\n/)',
  },
  {
    fault: 'a sealed secret opens for another name',
    file: 'services/hooks/secrets.ts',
    find: 'Buffer.concat([mark, Buffer.from(name)])',
    replace: 'Buffer.concat([mark, Buffer.from(name.slice(0, 0))])',
  },
  {
    fault: 'durations may be in weeks',
    file: 'kernel/time.ts',
    find: '/^(\\d{1,9})([smhd])$/',
    replace: '/^(\\d{1,9})([smhdw])$/',
  },
]
