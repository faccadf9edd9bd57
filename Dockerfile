# `docker build -t fair-envs .`, then `docker run fair-envs` plays the demo, and `docker run fair-envs fair-envs list` any
# other command. `-v $PWD/runs:/work/runs` keeps what it writes. uv knows where PyTorch has its builds for CPUs, which
# save several gigabytes; `--build-arg TORCH=cu130` takes that for a version of CUDA, `--build-arg TORCH=` that of PyPI.
FROM python:3.12-slim
ENV UV_NO_CACHE=1 UV_COMPILE_BYTECODE=1 OMP_NUM_THREADS=1 SDL_VIDEODRIVER=dummy MPLBACKEND=Agg
WORKDIR /work
COPY pyproject.toml constraints.txt README.md LICENSE pytest_fair_envs.py ./source/
COPY baselines ./source/baselines
COPY wrappers ./source/wrappers
COPY fair_envs ./source/fair_envs
ARG TORCH=cpu
RUN pip install --no-cache-dir --constraint source/constraints.txt uv \
    && uv pip install --system ${TORCH:+--torch-backend "$TORCH"} --constraint source/constraints.txt "./source[all]" \
    && rm -r source && fair-envs warm
CMD ["fair-envs", "demo"]
