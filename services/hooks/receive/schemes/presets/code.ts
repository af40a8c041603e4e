import type { Preset } from '../scheme.ts'
import { EVENT, HEX, ID, NOWHERE, SHA256_HEX, STAMPED, STANDARD_WEBHOOKS, TYPE } from './shared.ts'

// Code, its builds, and where it runs. The neutral names of the contract come first.

export const CODE: readonly Preset[] = [
  {
    name: 'github',
    title: 'GitHub',
    docs: 'https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries',
    setup:
      'In the settings of the repository or organization, under Webhooks, add this URL with ' +
      'content type application/json. Paste the secret that is made here.',
    tested: 'vector',
    scheme: {
      ...SHA256_HEX,
      signature: ['x-codehost-signature-256', 'x-hub-signature-256'],
      type: { headers: ['x-codehost-event', 'x-github-event'], json: [] },
      id: { headers: ['x-codehost-delivery', 'x-github-delivery'], json: [] },
    },
  },
  {
    name: 'gitlab',
    title: 'GitLab (secret token)',
    docs: 'https://docs.gitlab.com/user/project/integrations/webhooks/',
    setup:
      'In the settings of the project or group, under Webhooks, add this URL. Paste the token ' +
      'that is made here as Secret token.',
    tested: 'document',
    scheme: {
      token: ['x-gitlab-token'],
      type: { headers: ['x-gitlab-event'], json: [] },
      id: { headers: ['idempotency-key'], json: [] },
    },
  },
  {
    name: 'gitlab-signed',
    title: 'GitLab (signing token)',
    docs: 'https://docs.gitlab.com/user/project/integrations/webhooks/',
    setup:
      'In the settings of the project or group, under Webhooks, add this URL. Set the Signing ' +
      'token to the secret that is made here, which begins with whsec_.',
    tested: 'library',
    scheme: {
      ...STANDARD_WEBHOOKS,
      signature: ['webhook-signature'],
      timestamp: ['webhook-timestamp'],
      type: { headers: ['x-gitlab-event'], json: [] },
      id: { headers: ['webhook-id'], json: [] },
    },
  },
  {
    name: 'gitea',
    title: 'Gitea',
    docs: 'https://docs.gitea.com/usage/webhooks',
    setup:
      'In the settings of the repository, under Webhooks, add a Gitea webhook with this URL and ' +
      'the content type application/json. Paste the secret that is made here.',
    tested: 'document',
    scheme: {
      ...HEX,
      signature: ['x-gitea-signature'],
      type: { headers: ['x-gitea-event'], json: [] },
      id: { headers: ['x-gitea-delivery'], json: [] },
    },
  },
  {
    name: 'forgejo',
    title: 'Forgejo',
    docs: 'https://forgejo.org/docs/latest/user/webhooks/',
    setup:
      'In the settings of the repository, under Webhooks, add a Forgejo webhook with this URL and ' +
      'the content type application/json. Paste the secret that is made here.',
    tested: 'document',
    scheme: {
      ...HEX,
      signature: ['x-forgejo-signature', 'x-gitea-signature'],
      type: { headers: ['x-forgejo-event', 'x-gitea-event'], json: [] },
      id: { headers: ['x-forgejo-delivery', 'x-gitea-delivery'], json: [] },
    },
  },
  {
    name: 'bitbucket',
    title: 'Bitbucket',
    docs: 'https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/',
    setup:
      'In the settings of the repository, under Webhooks, add this URL. Paste the secret that ' +
      'is made here.',
    tested: 'vector',
    scheme: {
      ...SHA256_HEX,
      signature: ['x-hub-signature'],
      type: { headers: ['x-event-key'], json: [] },
      id: { headers: ['x-request-uuid', 'x-request-id'], json: [] },
    },
  },
  {
    name: 'azure-devops',
    title: 'Azure DevOps (password)',
    docs: 'https://learn.microsoft.com/en-us/azure/devops/service-hooks/services/webhooks',
    setup:
      'In the project settings, under Service hooks, add a Web Hooks subscription with this URL. ' +
      'Paste the token that is made here as the password of basic authentication.',
    tested: 'document',
    scheme: { token: [], type: { headers: [], json: ['eventType'] }, id: ID },
  },
  {
    name: 'circleci',
    title: 'CircleCI',
    docs: 'https://circleci.com/docs/outbound-webhooks/',
    setup:
      'In the project settings, under Webhooks, add this URL. Paste the secret that is made here ' +
      'as Secret token.',
    tested: 'vector',
    scheme: {
      ...HEX,
      signature: ['circleci-signature'],
      prefix: 'v1=',
      list: { separator: ',' },
      type: { headers: ['circleci-event-type'], json: ['type'] },
      id: ID,
    },
  },
  {
    name: 'buildkite',
    title: 'Buildkite',
    docs: 'https://buildkite.com/docs/apis/webhooks/pipelines',
    setup:
      'In the settings, under Notification Services, add a webhook with this URL that sends ' +
      'X-Buildkite-Signature. Copy its token.',
    tested: 'document',
    scheme: {
      ...STAMPED,
      signature: ['x-buildkite-signature'],
      prefix: 'signature=',
      list: { separator: ',', time: 'timestamp=' },
      type: { headers: ['x-buildkite-event'], json: ['event'] },
      id: NOWHERE,
      isGiven: true,
    },
  },
  {
    name: 'vercel',
    title: 'Vercel (SHA-1)',
    docs: 'https://vercel.com/docs/webhooks/webhooks-api',
    setup:
      'In the settings of the team, under Webhooks, add this URL. Copy the secret that is shown.',
    tested: 'document',
    scheme: {
      ...HEX,
      algorithm: 'sha1',
      signature: ['x-vercel-signature'],
      type: TYPE,
      id: ID,
      isGiven: true,
    },
  },
  {
    name: 'netlify',
    title: 'Netlify (JWT with a shared secret)',
    docs: 'https://docs.netlify.com/site-deploys/deploy-notifications/#payload-signature',
    setup:
      'In the project configuration, under Notifications, add an outgoing webhook with this URL. ' +
      'Paste the secret that is made here as JWS secret token.',
    tested: 'document',
    scheme: {
      ...HEX,
      encoding: 'base64url',
      signature: ['x-webhook-signature'],
      signed: '{jwt}',
      jwt: { issuer: 'netlify', bodyHash: 'sha256' },
      type: { headers: ['x-netlify-event'], json: [] },
      id: NOWHERE,
    },
  },
  {
    name: 'docker-hub',
    title: 'Docker Hub (token in the URL)',
    docs: 'https://docs.docker.com/docker-hub/repos/manage/webhooks/',
    setup:
      'In the repository, under Webhooks, add this URL. Put the token that is made here behind ' +
      'it, as ?token=TOKEN.',
    tested: 'document',
    scheme: { token: [], type: NOWHERE, id: NOWHERE },
  },
  {
    name: 'npm',
    title: 'npm',
    docs: 'https://github.com/npm/npm-hook-receiver',
    setup:
      'Add a hook with this URL to the package by the API of the registry. Give it the secret ' +
      'that is made here.',
    tested: 'library',
    scheme: { ...SHA256_HEX, signature: ['x-npm-signature'], type: EVENT, id: NOWHERE },
  },
  {
    name: 'linear',
    title: 'Linear',
    docs: 'https://linear.app/developers/webhooks',
    setup: 'In the settings, under API, add a webhook with this URL. Copy its signing secret.',
    tested: 'library',
    scheme: {
      ...HEX,
      signature: ['linear-signature'],
      timeMember: 'webhookTimestamp',
      type: { headers: ['linear-event'], json: [] },
      id: { headers: ['linear-delivery'], json: [] },
      isGiven: true,
      answer: 200,
    },
  },
  {
    name: 'jira',
    title: 'Jira',
    docs: 'https://developer.atlassian.com/cloud/jira/platform/webhooks/',
    setup:
      'As an administrator, under System, WebHooks, create a webhook with this URL. Paste the ' +
      'secret that is made here.',
    tested: 'vector',
    scheme: {
      ...SHA256_HEX,
      signature: ['x-hub-signature'],
      type: { headers: [], json: ['webhookEvent'] },
      id: { headers: ['x-atlassian-webhook-identifier'], json: [] },
    },
  },
]
