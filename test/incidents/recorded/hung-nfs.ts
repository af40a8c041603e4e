import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'Everything that touches a network mount hangs',
  asks: 'The load is 60 and the media pages time out, but the CPUs are idle.',
  host: { load: 61 },
  services: [
    {
      name: 'host',
      checks: [
        { name: 'load', state: 'warn', since_min: 33, says: 'load of 15.2 for each processor' },
      ],
    },
    {
      name: 'media',
      checks: [{ name: 'page', state: 'fail', since_min: 35, says: 'no answer within 10 s' }],
    },
  ],
  programs: {
    df: [{ prints: 'df: stopped after 60 s without an answer from /mnt/media', exit: 124 }],
    ps: [
      {
        prints: `  PID STAT WCHAN                 COMMAND
 2101 D    rpc_wait_bit_killable node /srv/media/thumbs.js
 2102 D    rpc_wait_bit_killable node /srv/media/thumbs.js
 3300 D    rpc_wait_bit_killable find /mnt/media -name *.jpg
 1002 S    ep_poll               node /srv/shop/server.js`,
      },
    ],
    mount: [
      { prints: 'nas-2:/export/media on /mnt/media type nfs4 (rw,hard,timeo=600,addr=10.0.0.40)' },
    ],
    ping: [{ prints: '3 packets transmitted, 0 received, 100% packet loss', exit: 1 }],
  },
  journal: {
    kernel: `{-36m} web-1 kernel: nfs: server nas-2 not responding, still trying
{-6m} web-1 kernel: nfs: server nas-2 not responding, still trying`,
  },
  expects: { names: ['nfs', 'nas-2', ['/mnt/media', 'D state', 'uninterruptible']] },
  good: {
    calls: [
      ['journal', { minutes: 60 }, 'server nas-2 not responding'],
      ['run_readonly', { argv: ['ps', 'axo', 'pid,stat,wchan,args'] }, 'rpc_wait_bit_killable'],
      ['run_readonly', { argv: ['mount'] }, '/mnt/media type nfs4'],
      ['run_readonly', { argv: ['ping', '-c3', 'nas-2'] }, '100% packet loss'],
    ],
    says: `The NFS server nas-2 has not answered for 36 minutes (kernel log, ping). It is mounted hard at /mnt/media,
so all that touches it waits in D state (ps), which is the load. Bring nas-2 back.`,
  },
  bad: {
    calls: [['run_check', { service: 'host' }]],
    says: 'The load is far too high for four CPUs. Add CPUs, or end thumbs.js.',
  },
}
