import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A container starts again and again, because a variable is missing',
  asks: 'The worker container does not stay up.',
  services: [
    {
      name: 'worker',
      checks: [
        { name: 'container', state: 'fail', since_min: 12, says: 'restarting, 41 times' },
        { name: 'redis port', state: 'ok', since_min: 9_000 },
      ],
      operations: ['restart-worker'],
    },
  ],
  programs: {
    docker: [
      {
        with: ['logs'],
        prints: `{-12m} worker 0.9.1 starting
{-12m} fatal: REDIS_URL is not set
{-1m} worker 0.9.1 starting
{-1m} fatal: REDIS_URL is not set`,
      },
      {
        with: ['inspect'],
        prints:
          '{"RestartCount":41,"State":{"ExitCode":78},"Config":{"Env":["NODE_ENV=production","REDIS_URI=redis://redis:6379"]}}',
      },
      {
        prints:
          'CONTAINER ID  IMAGE         STATUS\nab12cd34      worker:0.9.1  Restarting (78) 5 seconds ago',
      },
    ],
  },
  files: {
    '/srv/worker/compose.yaml':
      'services:\n  worker:\n    image: worker:0.9.1\n    environment:\n      REDIS_URI: redis://redis:6379\n',
  },
  expects: { names: ['REDIS_URL', ['REDIS_URI', 'not set', 'missing', 'compose']] },
  good: {
    calls: [
      ['run_readonly', { argv: ['docker', 'logs', 'worker'] }, 'REDIS_URL is not set'],
      ['run_readonly', { argv: ['docker', 'inspect', 'worker'] }, 'REDIS_URI='],
      ['read_file', { path: 'srv/worker/compose.yaml' }, 'REDIS_URI'],
    ],
    says: `The worker ends with 78 at each start: "REDIS_URL is not set" (docker logs). compose.yaml sets REDIS_URI
instead (docker inspect agrees). Rename the variable.`,
  },
  bad: {
    calls: [['run_readonly', { argv: ['docker', 'ps'] }]],
    says: 'The container runs out of memory and restarts. Give it more memory.',
  },
}
