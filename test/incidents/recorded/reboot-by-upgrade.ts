import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A service is down after an unattended reboot, because it is not enabled',
  asks: 'The metrics service is gone, and nobody has touched it.',
  host: { uptime_h: 1 },
  services: [
    {
      name: 'metrics',
      checks: [
        {
          name: 'port 9090',
          state: 'fail',
          since_min: 71,
          says: 'connect ECONNREFUSED 127.0.0.1:9090',
          before: [{ state: 'ok', since_min: 60_000 }],
        },
      ],
      operations: ['start-metrics'],
    },
    { name: 'shop', checks: [{ name: 'page', state: 'ok', since_min: 70 }] },
  ],
  programs: {
    systemctl: [
      { with: ['is-enabled'], prints: 'disabled', exit: 1 },
      {
        prints:
          '○ metrics.service - Metrics\n     Loaded: loaded (/etc/systemd/system/metrics.service; disabled)\n     Active: inactive (dead)',
        exit: 3,
      },
    ],
    uptime: [{ prints: 'up 1:12, 2 users, load average: 0.20, 0.18, 0.10' }],
  },
  journal: {
    'unattended-upgrades.service': `{-75m} web-1 unattended-upgrade[90]: Packages that were upgraded: linux-image-amd64
{-73m} web-1 unattended-upgrade[90]: Found /var/run/reboot-required, rebooting`,
    'metrics.service': '{-73m} web-1 systemd[1]: Stopped metrics.service.',
  },
  expects: {
    names: [
      ['reboot', 'restarted'],
      ['disabled', 'not enabled', 'enable'],
      ['upgrade', 'kernel', 'linux-image'],
    ],
  },
  good: {
    calls: [
      ['run_readonly', { argv: ['uptime'] }, 'up 1:12'],
      ['journal', { unit: 'unattended-upgrades.service' }, 'rebooting'],
      ['run_readonly', { argv: ['systemctl', 'is-enabled', 'metrics'] }, 'disabled'],
    ],
    says: `The host made a reboot 73 minutes ago for a kernel upgrade (journal of unattended-upgrades). metrics.service is
disabled (systemctl is-enabled), so nothing started it again. Enable and start it.`,
  },
  bad: {
    calls: [['journal', { unit: 'metrics.service' }]],
    says: 'Somebody stopped metrics.service by hand. Ask who it was.',
  },
}
