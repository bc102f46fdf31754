import type { JsonObject } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import type { ModelEntry } from '../catalog/catalog.ts';
import { promptSize } from '../chat/prompt-size.ts';
import type { BoundedRequest } from './dialect.ts';
import { DIALECTS } from './index.ts';

const DATA = 'A'.repeat(100_000);
const base64 = { type: 'base64', media_type: 'image/png', data: DATA };

const chat = (part: JsonObject) =>
  DIALECTS.chat_completions.read({ messages: [{ role: 'user', content: [part] }] });
const response = (part: JsonObject) =>
  DIALECTS.responses.read({ input: [{ role: 'user', content: [part] }] });
const message = (part: JsonObject) =>
  DIALECTS.messages.read({ messages: [{ role: 'user', content: [part] }] });

describe('an image of a native request', () => {
  it.each<[string, () => BoundedRequest]>([
    [
      'chat completions',
      () => chat({ type: 'image_url', image_url: { url: `data:image/png;base64,${DATA}` } }),
    ],
    [
      'responses',
      () => response({ type: 'input_image', image_url: `data:image/png;base64,${DATA}` }),
    ],
    ['messages', () => message({ type: 'image', source: base64 })],
  ])('is measured as an image and not by its bytes in %s (AP-2, EM-3)', (_, read) => {
    const { images, texts } = promptSize({ ...EMPTY, messages: read().messages });
    expect(images).toBe(1);
    expect(texts.join('').length).toBeLessThan(1_000);
  });

  it.each<[string, () => BoundedRequest]>([
    ['chat completions', () => chat({ type: 'image_url', image_url: { file_id: 'file-1' } })],
    ['responses', () => response({ type: 'input_image', file_id: 'file-1' })],
    ['messages', () => message({ type: 'image', source: { type: 'file', file_id: 'file-1' } })],
    [
      'a tool result of messages',
      () =>
        message({
          type: 'tool_result',
          tool_use_id: 'toolu_1',
          content: [{ type: 'image', source: { type: 'file', file_id: 'file-1' } }],
        }),
    ],
  ])(
    'is rejected in %s when it references a file that the provider has stored (AP-2, SYS-6)',
    (_, read) => {
      expect(read).toThrow(/file_id refers to content whose size is unknown/);
    },
  );

  it.each([
    [{ type: 'ephemeral' }, 'short'],
    [{ type: 'ephemeral', ttl: '1h' }, 'long'],
  ])('with the cache control %j can write to the cache (AP-2, EM-3)', (control, writes) => {
    const read = message({ type: 'image', source: base64, cache_control: control });
    expect(read.cacheWrites).toBe(writes);
  });
});

describe('audio or video in a native request', () => {
  const audio = { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } };
  const notAllowed = (field: string) =>
    expect.objectContaining({ reason: 'NATIVE_FIELD_NOT_ALLOWED', metadata: { field } });

  it.each<[string, () => BoundedRequest, string]>([
    ['chat completions', () => chat(audio), 'messages[0]: input_audio'],
    ['responses', () => response(audio), 'input[0]: input_audio'],
    [
      'the dialect of other servers',
      () => chat({ type: 'audio_url', audio_url: { url: 'https://example.com/a.wav' } }),
      'messages[0]: audio_url',
    ],
  ])('is rejected in %s, because it costs more than text (AP-2, EM-3)', (_, read, field) => {
    expect(read).toThrow(notAllowed(field));
  });

  it('is rejected when it refers to an answer that the provider has stored (AP-2)', () => {
    const read = (message: JsonObject) => () =>
      DIALECTS.chat_completions.read({ messages: [{ role: 'assistant', ...message }] });
    expect(read({ audio: { id: 'audio_1' } })).toThrow(notAllowed('messages[0].audio'));
    expect(read({ content: 'Hello.', audio: null })).not.toThrow();
  });

  it.each<[string, JsonObject]>([
    ['audio_url', { url: 'https://example.com/a.wav' }],
    ['input_audio', { data: 'UklGRg==', format: 'wav' }],
    ['video_url', { url: 'https://example.com/a.mp4' }],
  ])('is rejected in %s also when the part has no type (AP-2, EM-3)', (name, value) => {
    for (const part of [{ [name]: value }, { [name]: 'https://example.com/a' }]) {
      expect(() => chat(part)).toThrow(notAllowed(`messages[0]: ${name}`));
    }
    expect(() => chat({ type: 'text', text: 'Hello.', [name]: null })).not.toThrow();
  });

  it.each(['tool_use', 'server_tool_use', 'mcp_tool_use'])(
    'is not searched for in the arguments of %s (AP-2)',
    (type) => {
      const input = { type: 'audio_url', audio_url: 'https://example.com/a.wav', file_id: 'f' };
      expect(() => message({ type, id: 'toolu_1', name: 'listen', input })).not.toThrow();
    },
  );
});

const EMPTY = { tools: [], toolChoice: undefined, temperature: undefined, json: false };

describe('a chat completion', () => {
  it.each([{}, { name: '', arguments: '' }])(
    'with the empty function_call %j has its tool calls (AP-2)',
    (function_call) => {
      const tool_calls = [{ id: 'call_1', type: 'function', function: { name: 'shell' } }];
      const choices = [{ message: { function_call, tool_calls }, finish_reason: 'tool_calls' }];
      const { toolUses } = DIALECTS.chat_completions.wholeOf({ choices });
      expect(toolUses).toEqual([{ index: 0, id: 'call_1', tool: 'shell', argumentsJson: '' }]);
    },
  );

  const sent = (body: JsonObject, mayStore: boolean) =>
    DIALECTS.chat_completions.bodyFor(
      { dialect: 'chat_completions', body, headers: {}, stream: false, includeUsage: false },
      { model: { streaming: true } as ModelEntry, maxOutputTokens: 10n, mayStore },
    );

  it('is not stored by the provider for a run without retention (AP-2, SUP-4)', () => {
    expect(sent({ store: true }, false).store).toBe(false);
    expect(sent({ store: true }, true).store).toBe(true);
    // Other servers may reject the field.
    expect(sent({}, false)).not.toHaveProperty('store');
  });
});
