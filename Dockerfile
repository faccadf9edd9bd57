# `docker build -t fair-envs .`, then `docker run fair-envs` plays the demo, and `docker run fair-envs fair-envs list` any
# other command. `-v $PWD/runs:/work/runs` keeps what it writes. `--build-arg INDEX=URL` names a further index of packages:
# PyTorch's index of builds for CPUs makes the image several gigabytes smaller.
FROM python:3.12-slim
ENV PIP_NO_CACHE_DIR=1 OMP_NUM_THREADS=1 SDL_VIDEODRIVER=dummy MPLBACKEND=Agg
WORKDIR /work
COPY pyproject.toml constraints.txt README.md LICENSE pytest_fair_envs.py ./source/
COPY baselines ./source/baselines
COPY wrappers ./source/wrappers
COPY fair_envs ./source/fair_envs
ARG INDEX
RUN pip install ${INDEX:+--extra-index-url "$INDEX"} --constraint source/constraints.txt "./source[all]" \
    && rm -r source && fair-envs warm
CMD ["fair-envs", "demo"]
