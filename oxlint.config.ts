import type { OxlintConfig, OxlintOverride } from 'oxlint'

/** The wings of each service: each imports those after it. */
const WINGS = {
  hooks: ['agents', 'send', 'log', 'receive'],
  links: ['transfer', 'visits', 'names', 'people'],
  ops: ['assistants', 'alerts', 'agent', 'watch'],
}
type Service = keyof typeof WINGS
const SERVICES: readonly Service[] = ['hooks', 'links', 'ops']
const PRODUCT = ['server.ts', '{commands,routes,html,services,db,kernel}/**']

/** Folders from top to bottom: none imports from one before it. */
const FLOORS = [
  ...['test', 'bench', 'deploy'],
  ...['commands', 'routes', 'html', 'services', 'db', 'kernel'],
]

/** The last part matches every file of kernel/ but html.ts: `regex` has no negative lookahead. */
const TYPES_OF_HTML = {
  regex: '/(services|db)/|/kernel/([^h]|h[^t]|ht[^m])',
  allowTypeImports: true,
  message: 'html/ imports kernel/html.ts, and types',
}

/**
 * An override for the imports of files. The last one that has a file counts alone: its patterns
 * are not added to those of the ones before. `wings` are the folders that use it.
 */
function imports(
  files: string,
  floor: string,
  {
    service,
    packages = [],
    wings = [],
  }: { service?: Service; packages?: readonly string[]; wings?: readonly string[] } = {},
): OxlintOverride {
  const above = FLOORS.slice(0, FLOORS.indexOf(floor)).join('|')
  const others = SERVICES.filter((name) => service !== undefined && name !== service)
  const allowed = [
    ...['./**', '../**', 'node:*', 'node:*/*'],
    ...packages.flatMap((name) => [name, `${name}/*`]),
  ]
  const patterns = [
    { regex: `^(\\.\\./)+(${above})/`, message: 'imports go down only' },
    ...(floor === 'html' ? [TYPES_OF_HTML] : []),
    ...wings.map((wing) => ({
      regex: `^(\\.\\./)+(\\w+/\\w+/)?${wing}/`,
      message: 'a wing imports those below',
    })),
    ...others.map((other) => ({ regex: `/${other}/`, message: 'no service imports another' })),
    { regex: '^node:http$', allowTypeImports: true, message: 'see kernel/http/node-http.ts' },
    {
      group: ['**', ...allowed.map((name) => `!${name}`), 'node:process'],
      message: 'a package is imported in one place: see oxlint.config.ts',
    },
  ]
  return { files: [files], rules: { 'no-restricted-imports': ['error', { patterns }] } }
}

/** The wings of a service that use this one. */
function wingsBefore(service: Service, wing: string): readonly string[] {
  return WINGS[service].slice(0, WINGS[service].indexOf(wing))
}

export default {
  plugins: ['typescript', 'import', 'promise'],
  categories: {},
  ignorePatterns: ['node_modules', 'dist', 'data', 'test/fixtures'],
  rules: {
    'no-unused-vars': 'error',
    'no-debugger': 'error',
    'no-empty': ['error', { allowEmptyCatch: false }],
    'no-useless-catch': 'error',
    'no-fallthrough': 'error',
    'no-self-compare': 'error',
    'no-unsafe-finally': 'error',
    'no-unused-expressions': 'error',
    'no-var': 'error',
    'no-eval': 'error',
    eqeqeq: 'error',
    'no-throw-literal': 'error',
    'no-console': 'error',
    'import/no-default-export': 'error',
    'import/no-cycle': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/no-non-null-assertion': 'error',
    'typescript/consistent-type-imports': 'error',
    'typescript/ban-ts-comment': 'error',
  },
  overrides: [
    { files: ['bench/**'], rules: { 'no-console': 'off' } },
    { files: ['oxlint.config.ts'], rules: { 'import/no-default-export': 'off' } },
    {
      files: PRODUCT,
      rules: {
        'max-lines': ['error', 400],
        'no-restricted-globals': ['error', 'process'],
        'no-restricted-properties': ['error', { property: 'unsafe' }],
      },
    },
    {
      // db/embedded/create.ts is a program of its own.
      files: [
        'server.ts',
        'commands/**',
        'kernel/{config,processes/*,http/node-http}.ts',
        'db/embedded/create.ts',
      ],
      rules: { 'no-restricted-globals': 'off' },
    },
    { files: ['db/client.ts'], rules: { 'no-restricted-properties': 'off' } },
    imports('{server.ts,commands/*}', 'commands'),
    imports('commands/frame/**', 'commands', { wings: ['house', ...SERVICES] }),
    imports('commands/house/**', 'commands', { wings: SERVICES }),
    ...SERVICES.map((own) =>
      imports(`commands/${own}/**`, 'commands', {
        wings: SERVICES.filter((service) => service !== own),
      }),
    ),
    imports('kernel/**', 'kernel'),
    imports('kernel/{schema,validate}.ts', 'kernel', { packages: ['typebox'] }),
    imports('kernel/http/websocket.ts', 'kernel', { packages: ['ws'] }),
    imports('kernel/cron.ts', 'kernel', { packages: ['croner'] }),
    ...['routes', 'html', 'services', 'db'].flatMap((floor) => {
      const packages = floor === 'db' ? ['postgres'] : []
      return [
        imports(`${floor}/**`, floor, { packages }),
        ...SERVICES.flatMap((service) => [
          imports(`${floor}/${service}/**`, floor, { service, packages }),
          ...WINGS[service].map((wing) =>
            imports(`${floor}/${service}/${wing}/**`, floor, {
              service,
              packages,
              wings: wingsBefore(service, wing),
            }),
          ),
        ]),
      ]
    }),
    imports('db/embedded/**', 'db', { packages: ['postgres', '@electric-sql/pglite'] }),
    imports('services/hooks/agents/queues/**', 'services', {
      service: 'hooks',
      packages: ['@redis/client'],
      wings: wingsBefore('hooks', 'agents'),
    }),
    imports('services/docs-markdown.ts', 'services', { packages: ['marked'] }),
    imports('services/notices/**', 'services', { packages: ['nodemailer'] }),
    imports('services/links/transfer/transfer/csv.ts', 'services', {
      service: 'links',
      packages: ['csv-parse'],
    }),
    imports('services/links/names/links/qr.ts', 'services', {
      service: 'links',
      packages: ['uqr'],
      wings: wingsBefore('links', 'names'),
    }),
  ],
} satisfies OxlintConfig
