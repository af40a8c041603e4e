import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A container is throttled by its CPU limit; warnings of its collector look guilty',
  kind: 'herring',
  asks: 'Search takes seconds since this morning, though the host is idle. Is it the garbage collector?',
  host: { load: 0.6 },
  services: [
    {
      name: 'search',
      checks: [
        {
          name: 'p95',
          state: 'fail',
          since_min: 310,
          says: 'p95 4,200 ms, expected 300 ms at most',
        },
        { name: 'port', state: 'ok', since_min: 9_000 },
      ],
      operations: ['restart-search'],
    },
    { name: 'host', checks: [{ name: 'load', state: 'ok', since_min: 9_000 }] },
  ],
  programs: {
    docker: [
      {
        with: ['inspect'],
        prints: '[{"Name":"/search","HostConfig":{"NanoCpus":300000000,"Memory":4294967296}}]',
      },
      {
        with: ['logs'],
        prints: `{-30d} search: WARN gc: concurrent mark took 180 ms
{-2d} search: WARN gc: concurrent mark took 176 ms
{-1h} search: WARN gc: concurrent mark took 181 ms
{-1h} search: query "red shoes" 4,310 ms (cpu 290 ms, waited 4,020 ms)`,
      },
      { prints: 'NAME    CPU %   MEM USAGE / LIMIT\nsearch  29.9%   1.1GiB / 4GiB' },
    ],
    cat: [
      {
        with: ['cpu.stat'],
        prints: `nr_periods 186000
nr_throttled 184120
throttled_usec 12944000000`,
      },
    ],
  },
  journal: {
    'deploy.service':
      '{-311m} web-1 deploy[90]: compose up search: cpus 2.0 -> 0.3 (commit "save CPUs on staging")',
  },
  expects: {
    names: [['throttl'], ['limit', '0.3', 'quota', 'NanoCpus'], ['cpu']],
    never: ['the garbage collector is the cause'],
  },
  good: {
    calls: [
      ['run_readonly', { argv: ['docker', 'logs', 'search'] }, 'waited 4,020 ms'],
      ['run_readonly', { argv: ['docker', 'inspect', 'search'] }, '"NanoCpus":300000000'],
      ['run_readonly', { argv: ['cat', '/sys/fs/cgroup/search/cpu.stat'] }, 'nr_throttled 184120'],
      ['journal', { unit: 'deploy.service' }, '2.0 -> 0.3'],
    ],
    says: `The container search is throttled in 99 % of its periods (cpu.stat): a deployment 311 minutes ago lowered its
limit from 2.0 to 0.3 CPUs. The warnings of the collector were the same 30 days ago and are not the cause.
Set the limit back.`,
  },
  bad: {
    calls: [['run_readonly', { argv: ['docker', 'logs', 'search'] }]],
    says: 'The garbage collector is the cause: its marks take 180 ms. Give the container a larger heap.',
  },
}
