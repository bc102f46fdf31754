import { createRequire } from 'node:module';
import { type Metadata, status } from '@grpc/grpc-js';

interface Status {
  readonly code: number;
  readonly details: string;
  readonly metadata: Metadata;
}

interface Listener {
  onReceiveMetadata(metadata: Metadata): void;
  onReceiveMessage(message: Buffer): void;
  onReceiveStatus(status: Status): void;
}

/** The part of grpc-js's Http2SubchannelCall that reads the trailers. */
interface SubchannelCall {
  listener: Listener;
  readonly finalStatus: Status | null;
  endCall: (status: Status) => void;
  handleTrailers(headers: unknown): void;
}

let isInOrder = false;

/**
 * Makes grpc-js clients of this process give all messages of a stream before its error. By itself
 * grpc-js lets an error overtake messages that were received but not read yet, and drops those
 * (grpc-node#2764), among them the last word of a model call that fails (EM-9). It does wait when
 * the status is OK, so it is shown OK, and whoever listens gets what the server said.
 */
export function keepMessageOrder(): void {
  if (isInOrder) return;
  isInOrder = true;
  const internals = createRequire(import.meta.url)('@grpc/grpc-js/build/src/subchannel-call');
  const prototype: SubchannelCall = internals.Http2SubchannelCall.prototype;
  const { handleTrailers } = prototype;
  prototype.handleTrailers = function (this: SubchannelCall, headers: unknown): void {
    const endCall = this.endCall.bind(this);
    this.endCall = (sent) => {
      this.endCall = endCall;
      if (sent.code === status.OK || this.finalStatus !== null) {
        endCall(sent);
        return;
      }
      const { listener } = this;
      this.listener = {
        onReceiveMetadata: (metadata) => listener.onReceiveMetadata(metadata),
        onReceiveMessage: (message) => listener.onReceiveMessage(message),
        onReceiveStatus: () => listener.onReceiveStatus(sent),
      };
      endCall({ ...sent, code: status.OK });
    };
    handleTrailers.call(this, headers);
  };
}
