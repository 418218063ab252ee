"""llama.cpp's own server with one small model: serve.py MODEL PORT TEMPLATE. One slot, one thread, loopback only."""

import signal
import sys

import xllamacpp

model, port, template = sys.argv[1], int(sys.argv[2]), sys.argv[3]
params = xllamacpp.CommonParams()
params.model.path = model
params.hostnames = ["127.0.0.1"]
params.port = port
params.ui = False
params.endpoint_props = True
params.n_ctx = 32768
params.n_parallel = 1
params.use_jinja = True
with open(template) as file:
    params.chat_template = file.read()
# A base model knows no end of a turn: these words are its end where a request names none.
params.antiprompt = ["</tool_call>", "<|im_end|>"]
# More threads than one are slower on a machine that does something else too.
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print("listening", server.listening_address, flush=True)
signal.pause()
